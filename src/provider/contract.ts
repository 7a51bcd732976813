import type { Clock } from './clock.js'
import type { DrainableError } from './error.js'

/** Names one member of one pool. `balancer` is the key given to `combineProviders`. */
export interface MemberRef {
  readonly pool: string
  readonly member: string
  readonly balancer?: string
}

/** Everything at an address; with a port only what has that one. `balancer` as in {@link MemberRef}. */
export interface AddressTarget {
  readonly address: string
  readonly port?: number
  readonly balancer?: string
}

/**
 * What the balancer is told to do with a member.
 *
 * - `ready`: it gets work
 * - `drain`: nothing new; persistent clients may still come
 * - `maint`: nothing new at all
 */
export type AdminState = 'ready' | 'drain' | 'maint'

/** What the balancer's own checks say. `unchecked`: it does not check this member. */
export type Health = 'up' | 'down' | 'unchecked' | 'unknown'

/** Plain JSON. */
export type Json =
  null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** What a call gets from the core: when to stop, and what time it is. */
export interface CallContext {
  /** Honoured at once; afterwards no socket and no timer of the call is left. */
  readonly signal: AbortSignal
  /** Where {@link LoadScope.sampledAt} comes from. */
  readonly clock: Clock
  /**
   * Takes the result of one change of {@link DrainableProvider.apply} as soon as that change has
   * ended, while others of the call are still under way. `index` is the place of the change in the
   * call. A deadline or an abort in the middle of the call then leaves unknown only what was not
   * handed up. What was not sent by then may be handed up as `rejected` in the moment of the abort.
   *
   * Called at most once for each index, only with the final result of that change, and never after
   * the call has ended. A provider that calls it does so for every change; one that never does works
   * all the same. The array that `apply` returns stays the whole answer.
   */
  readonly result?: (index: number, result: ChangeResult) => void
}

/** What raising a member to maint does to its established work. */
export type MaintEffect = 'gentle' | 'cuts' | 'unknown' | 'none'

/** What a product can do, asked once and allowed to depend on its version. */
export interface Capabilities {
  /** The admin states it knows. The core asks for no other. */
  readonly ladder: readonly AdminState[]
  /**
   * What raising to maint does to established work: kept (`gentle`), cut, not known, or there is no
   * maint. Anything but `gentle` is done only on the caller's word. {@link PresentReading.maint} wins.
   */
  readonly maint: MaintEffect
  /** Whether work left at a deadline can be cut. If `false`, `onTimeout: 'terminate'` is refused. */
  readonly terminate: boolean
  /** Whether a member can be taken out of its pool. If `false`, `until: 'removed'` is refused. */
  readonly remove: boolean
  /** Whether a member can be added to a pool. */
  readonly add: boolean
  /**
   * What {@link LoadScope.active} counts. `none`: a drain is never verified idle; it ends by
   * {@link LoadScope.released}, or by time; `active` and `queued` are 0, a process that is `released`
   * and says anything else is unread.
   */
  readonly counts: 'requests' | 'connections' | 'none'
  /** How old a count can be when it is read, in milliseconds. Two samples are taken at least that far apart. */
  readonly freshness: number
  /**
   * For how long the product can hide work that is already bound to a member, in milliseconds
   * (HAProxy: a retry in turn-around, 1,100). Arrivals must stay unchanged for at least that long.
   */
  readonly blind: number
  /** For how long a call that was given up can still be executed, in milliseconds. */
  readonly lateBound: number
  /**
   * Whether admin states outlive a reload of the product. The core does not ask: it compares every
   * reading with its wish and puts back what is missing. Where it is given, the contract suite holds
   * the provider to it. Default: nothing is said.
   */
  readonly survivesReload?: boolean
  /**
   * Whether load can still be read after the member is removed. If `true`, every process is listed for
   * an absent member too, with zeros where it never had work for it: one that is not listed is unread,
   * and a member that goes ends only once each has been read as idle, or has ended. If `false`, what an
   * absent member held in processes that are not listed is reported as lost.
   */
  readonly countsAfterRemove: boolean
  /** A product with a fixed delay of its own: a shorter `timeout` can't achieve anything, in milliseconds. */
  readonly minTimeout?: number
  /** Shortest pause between two observes, in milliseconds. */
  readonly minInterval?: number
}

/** What a provider is talking to. */
export interface ProviderInfo {
  /** Such as `haproxy`. */
  readonly product: string
  readonly version: string
  readonly capabilities: Capabilities
}

/** Work held for one member by one process that can hold work for it. */
export interface LoadScope {
  /** Names the process: a worker, a unit, a node, a proxy. Stable while it lives. */
  readonly scope: string
  /**
   * Changes when this process may have lost counters or admin state
   * (HAProxy: node, pid and start time; an appliance: role and boot time).
   */
  readonly incarnation: string
  /** `unread`: known to exist, could not be read. `ended`: positively known to be gone. */
  readonly state: 'read' | 'unread' | 'ended'
  /**
   * The earliest moment the numbers can be from, by the call's clock. Two readings with one
   * `sampledAt` are one sample.
   */
  readonly sampledAt: number
  /** Requests or connections in flight. */
  readonly active: number
  /**
   * For how long the oldest of `active` has been in flight, in milliseconds, where the product tells it
   * cheaply: for a person (`why()`, `DRAIN_TIMEOUT`, events), never for the proof. Leave it out where it is
   * not known; it need not come with each reading. HAProxy (`show sess`): once a server has been drained and
   * busy for 10 s; before 3.0 an HTTP request counts from the end of the one before it on its connection.
   */
  readonly oldest?: number
  /** Waiting for this member. */
  readonly queued: number
  /** Reusable connections with no work on them: information only, never held against idle. */
  readonly pooled?: number
  /** Cumulative: everything that starts or restarts work (HAProxy: stot + wretr). A fall is a change too. */
  readonly arrivals?: number
  /**
   * The life in which `arrivals` began at zero (Envoy: the process; Citrix ADC: the boot). Where another text is read,
   * every arrival came since then, also where the figure is the one of before. Leave it out where the product may carry
   * its counters into another life (HAProxy: `stats-file`), or can't tell: then only another figure shows that work came.
   */
  readonly countersFrom?: string
  /**
   * The state that this process itself has taken for the member: its own or an inherited one, whichever
   * is higher. The core compares it with its wish, which a provider is never told: an old worker that
   * stayed at ready or at drain is not in force. Default: {@link PresentReading.own} speaks for this
   * process too.
   */
  readonly admin?: AdminState | 'unknown'
  /**
   * `false`: what this process was sent last is not in force in it yet, whatever `admin` says (Envoy: the
   * newest set was not acknowledged, or does not act yet; Citrix ADC: the numbers are from before the
   * change). It is no comparison with a wish: that is what `admin` is for. Default: true.
   */
  readonly inForce?: boolean
  /**
   * `false`: no client can come to the member through this process any more, whatever its state (it
   * accepts no connection, and none is left that could bring another request). Default: a client can.
   */
  readonly open?: boolean
  /**
   * The product's own clock in this process, in milliseconds: time that it did not live through
   * (stopped, a paused VM) is left out, because hidden work waits by that clock (HAProxy:
   * `Uptime_sec` of `show info float`). Default: the time that slow answers took is left out instead.
   */
  readonly lived?: number
  /** The product's own word that nothing is attached to the member in this scope. */
  readonly released?: boolean
  /** Why it is unread, not in force or weaker than usual, in a few words for a person. */
  readonly note?: string
  /**
   * A process that is not the current one of this control point (an old worker): its work ends by
   * itself, it takes no more changes.
   */
  readonly old?: boolean
}

/** A member as found. */
export interface PresentReading {
  readonly ref: MemberRef
  readonly present: true
  /** Address, port and the product's id: another identity is another member, whatever its name. */
  readonly identity: string
  readonly address?: string
  readonly port?: number
  readonly weight?: number
  /** The member's own state, ours to change. `unknown`: the product contradicts itself, or says something we don't know. */
  readonly own: AdminState | 'unknown'
  /** What it inherits (a tracked server, a node, a server object, DNS). */
  readonly inherited?: AdminState
  /**
   * What the product's stored configuration makes of it at the next reload, where that keeps new work
   * away and can be taken back by `restore` (HAProxy Data Plane API: `weight 0` in the file, while the
   * process runs it as ready). It is nothing to the proof of a drain; but an undo and `ready()` are not
   * done before it is gone: they ask for a `restore` to `ready`, also of a member that is ready.
   */
  readonly stored?: 'drain' | 'maint'
  /** Would it get new, non-persistent work now? */
  readonly serves: boolean
  readonly health: Health
  readonly scopes: readonly LoadScope[]
  /** What maint does to this object's established work, where it can be read; wins over the capability. */
  readonly maint?: MaintEffect
  /** What the adapter needs to restore; its own words. */
  readonly native?: Json
  /**
   * `true`: the own state counts as sealed although it is not maint (Citrix ADC: OUT OF SERVICE under our
   * own graceful disable). `false`: clients can still come although it is maint (HAProxy: through an old
   * worker that takes no more changes, where the option oldWorkers accepts that). Default: maint is sealed.
   */
  readonly sealed?: boolean
  /**
   * What this provider cannot see of the member's work, in one sentence that names the option or
   * setting that would help: idle is then said with `verifiedIdle: false` and this reason.
   */
  readonly unverified?: string
  /**
   * What sets its own state beside people, as words for a sentence: `its agent at 10.0.0.1:9000`. Named
   * where the state is not as we set it, in place of another client.
   */
  readonly setBy?: string
  /**
   * How long one change of this member takes, in milliseconds, where the product takes changes one after the
   * other. A drain of many counts it: a `timeout` that can't hold the changes and the proof is refused. Default: 0.
   */
  readonly changeTime?: number
  /** Hints of the product for a person who asks why it is not idle, such as `3 persistence records`. */
  readonly hints?: readonly string[]
}

/** Not in the configuration. Scopes are listed all the same: an old worker may still be busy. */
export interface AbsentReading {
  readonly ref: MemberRef
  readonly present: false
  readonly scopes: readonly LoadScope[]
  /** Hints of the product why it is not there, or where it is instead: the `NOT_FOUND` of a drain names them. */
  readonly hints?: readonly string[]
}

/** One member at one moment. */
export type Reading = PresentReading | AbsentReading

/** How many of a pool would get new work. */
export interface PoolReading {
  readonly pool: string
  readonly balancer?: string
  /** Members that would get new, non-persistent work now. */
  readonly serving: number
  readonly total: number
  /** What the product does when no member serves: refuse, send elsewhere, or use all members. */
  readonly whenNone: 'refuse' | 'spill' | 'all' | 'unknown'
}

/** What one {@link DrainableProvider.observe} saw. */
export interface Snapshot {
  readonly readings: readonly Reading[]
  readonly pools: readonly PoolReading[]
  /**
   * What ends processes: the names of those that are known to have ended; or `unlisted`: the product
   * listed every process in this very moment (`show proc`, a list of units), so one that a reading does
   * not list has ended. Without it a process that is not listed any more is unread, because nothing said
   * that it is gone. A provider lists what it sees now, and remembers nothing for that: the core knows
   * which processes it has seen for a member, also those that a ticket brings.
   */
  readonly ended?: readonly string[] | 'unlisted'
}

/** One wished change of one member. `identity`: if another one is found, nothing is touched. */
export type Change = { readonly ref: MemberRef; readonly identity?: string } & (
  | {
      /** Raises, never lowers: a member found in maint stays there. */
      readonly kind: 'hold'
      readonly to: 'drain' | 'maint'
    }
  | {
      /** Undoes only where `expect` is found, and only what we changed. */
      readonly kind: 'restore'
      readonly expect: AdminState
      readonly to: AdminState
      /** {@link PresentReading.native} as it was before our first change. */
      readonly native?: Json
    }
  | {
      /** Cuts what is in flight. */
      readonly kind: 'terminate'
    }
  | {
      /** Takes the member out of its pool. Never through an opening of the member. */
      readonly kind: 'remove'
    }
  | {
      readonly kind: 'add'
      readonly address: string
      readonly port: number
      readonly weight?: number
      readonly native?: Json
    }
)

/** What became of one change. A refusal is a value, not a throw. */
export type ChangeResult =
  | {
      readonly ref: MemberRef
      /** `unchanged`: it was so already. */
      readonly status: 'applied' | 'unchanged'
      /** How many were cut. */
      readonly terminated?: number
      /** The number is the load of the last reading before it: an upper bound. */
      readonly atMost?: boolean
    }
  | {
      readonly ref: MemberRef
      /** `unknown`: it may or may not have happened, or still happen within {@link Capabilities.lateBound}. */
      readonly status: 'rejected' | 'unknown'
      readonly error: DrainableError
    }

/**
 * One control point of a load balancer: the seam between the core and a product.
 *
 * The contract is level-triggered and works on sets: `observe` reads what is, `apply` asks for what
 * should be, and the core compares. A throw, a time-out or an abort of `apply` means that the
 * outcome of every change in the call is unknown whose result was not handed up
 * ({@link CallContext.result}). Prove an implementation of your own with `providerContract` of
 * `drainable/testing`.
 */
export interface DrainableProvider extends AsyncDisposable {
  readonly specVersion: 1
  /** The kind, such as `haproxy-runtime`. */
  readonly name: string
  /** Which one, such as `unix:/run/haproxy/admin.sock`: two providers with one name and instance are the same balancer. No secrets. */
  readonly instance: string
  /** Product, version, capabilities. */
  describe(ctx: CallContext): Promise<ProviderInfo>
  /**
   * Reads members in one or few round trips however many refs. Unknown refs come back with
   * `present: false`. A provider that counts never returns a present member without a scope.
   */
  observe(refs: readonly MemberRef[] | 'all', ctx: CallContext): Promise<Snapshot>
  /** Asks for changes; one result per change, in order. */
  apply(changes: readonly Change[], ctx: CallContext): Promise<readonly ChangeResult[]>
  /**
   * Names what has an address, where that costs less than a look at everything; asked for a target
   * `{ address, port? }`. What it names is looked at next, and what then has another address or port is
   * left out. Without a port one ref may stand for the whole machine (BIG-IP: a node, in every pool).
   * Nothing found is an empty list.
   */
  find?(wanted: AddressTarget, ctx: CallContext): Promise<readonly MemberRef[]>
  /** Pushes snapshots where the product can push. */
  watch?(refs: readonly MemberRef[], ctx: CallContext): AsyncIterable<Snapshot>
  /**
   * Closes every socket. After that every call throws `CONNECTION_LOST` with `retryable: false`, which
   * means nothing else: the core learns of it by that alone, and looks no more.
   */
  close(): Promise<void>
}

/** How a TLS server is known. Give `ca` or `fingerprint256`; `insecure` switches verification off. */
export interface Tls {
  /** PEM text, or the path of a PEM file. Default: the system's authorities. */
  readonly ca?: string | undefined
  /** SHA-256 fingerprint of the server's certificate, with or without colons: only this one is accepted. */
  readonly fingerprint256?: string | undefined
  /** Client certificate: PEM text, or the path of a PEM file. */
  readonly cert?: string | undefined
  /** Key of the client certificate: PEM text, or the path of a PEM file. */
  readonly key?: string | undefined
  /** Name the certificate must be for. Default: the URL's host. */
  readonly servername?: string | undefined
  /** Accept any certificate. */
  readonly insecure?: true | undefined
}

/** A secret, or a function that fetches it: asked for again after a refusal, so that it can rotate. */
export type Secret = string | (() => string | Promise<string>)
