/** One row of `show stat`, its values in the order of the columns. */
export interface StatRow {
  readonly object: 'Frontend' | 'Backend' | 'Server'
  readonly iid: number
  readonly sid: number
  readonly values: readonly (string | number)[]
}
