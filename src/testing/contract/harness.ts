import type { AdminState, DrainableProvider, MemberRef } from '../../provider/contract.js'

/**
 * One balancer, freshly made for one case, with a provider connected to it. Write one for your own
 * adapter, hand its opener to {@link providerContract}, and give the cases to your test runner.
 *
 * A case that needs an optional part which is not here is skipped, and says which: see {@link ContractCase.run}.
 */
export interface ContractHarness extends AsyncDisposable {
  readonly provider: DrainableProvider
  /** The pool that the cases work on. */
  readonly pool: string
  /** Its members, all ready and with nothing to do: at least two. */
  readonly members: readonly [MemberRef, MemberRef, ...MemberRef[]]
  /**
   * Puts one request (or connection) in flight on a member, whatever its state; the returned function
   * lets it end in good order. Needed unless the provider counts nothing.
   */
  occupy?(ref: MemberRef): Promise<() => Promise<void>>
  /** Changes a member without the provider, as another person or program would. */
  setBehind(ref: MemberRef, to: AdminState | 'gone'): Promise<void>
  /** Lets the product start again or read its configuration again, where it can. */
  reload?(): Promise<void>
  /** From now on the product cannot be reached: refused, cut off or silent, as you like. */
  disconnect(): Promise<void>
  /** The next change of a state is carried out, and its answer gets lost. For products that a test can do that to. */
  loseAnswer?(): Promise<void>
  /**
   * From now on every answer is damaged: its first half and then the end of the connection, something that the
   * product never says, or nothing at all over a connection that stays open. The returned function ends that.
   */
  damage?(how: 'cut' | 'garbage' | 'silent'): Promise<() => Promise<void>>
  /**
   * Of the requests that change something, the one after the next `nth` is refused in the product's words; the
   * returned function ends that.
   */
  refuseChange?(nth: number): Promise<() => Promise<void>>
  /**
   * What the provider was given, or got from the product, that no message may show: passwords, private keys, tokens.
   * Asked for after each call, because a token comes with a login.
   */
  readonly secrets?: () => readonly string[]
  /** A provider of the same product that was given a wrong password, and what it was given. It is closed by the case. */
  stranger?(): { readonly provider: DrainableProvider; readonly password: string }
  /** Connections that are open at the product at present. */
  readonly sockets?: () => number
  /** How many requests the product got so far. Batching is a feature, so it is tested. */
  readonly requests: () => number
  /** How much slower than a local socket the product is; every bound is multiplied by it. Default 1. */
  readonly timeScale?: number
}

/** One case of the contract: plain data, for any test runner. */
export interface ContractCase {
  /** One sentence: what a provider does. */
  readonly name: string
  /** Milliseconds to grant it. */
  readonly timeout: number
  /**
   * Opens a harness of its own, and throws (`node:assert`) where the provider breaks the contract.
   *
   * A case that can't judge anything, because the harness has not the hook that it needs or the product has not the
   * thing that it is about, calls `context.skip` with the reason. It throws the reason where there is no such context: a
   * case that judged nothing has not passed.
   */
  readonly run: (context?: CaseContext) => Promise<void>
}

/** What a test runner hands to a test, as far as a case needs it. The contexts of `node:test` and Vitest are ones. */
export interface CaseContext {
  /** Marks the test as skipped. It may throw, as Vitest's does, or return. */
  skip(reason: string): unknown
}
