/** What came of so many random drains. */
export interface RandomRun {
  readonly outcomes: Readonly<Record<string, number>>
  readonly requests: number
  /** Each names the seed of its drain: idle was said and verified, and work was there or came. */
  readonly falseIdles: readonly string[]
}
