/** What came of so many random drains. */
export interface RandomRun {
  readonly outcomes: Readonly<Record<string, number>>
  readonly requests: number
  /** What happened meanwhile, by how often; where it is counted. */
  readonly disturbances?: Readonly<Record<string, number>>
  /** Each names the seed of its drain: idle was said and verified, and work was there or came. */
  readonly falseIdles: readonly string[]
}
