import type { EndpointSink, LoadReports } from './sink.js'

/** Load reports on a port of their own. Made by `loadReports()` of `drainable/envoy/grpc`. */
export interface LoadReportSource {
  /** What the proxies report. */
  readonly loads: LoadReports
  /** Where it listens; undefined before it does. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /**
   * Begins to listen.
   *
   * @param names - the endpoint sets that are asked for
   */
  open(names: () => readonly string[]): Promise<void>
  /** Stops listening. The provider does it at its own close. */
  close(): Promise<void>
}

/** A sink, with load reports that come another way. What it can't do otherwise, it can't do with them. */
export function withLoads(sink: EndpointSink, source: LoadReportSource): EndpointSink {
  let names: readonly string[] = []
  return {
    ...optional(sink),
    kind: sink.kind,
    instance: sink.instance,
    lateBound: sink.lateBound,
    loads: source.loads,
    open: async (host) => {
      await source.open(() => names)
      await sink.open?.(host)
    },
    load: async (host, signal) => {
      const found = await sink.load(host, signal)
      names = [...found.keys()]
      return found
    },
    publish: (set, signal, expected) => sink.publish(set, signal, expected),
    close: async () => {
      await Promise.all([sink.close(), source.close()])
    },
  }
}

/** What not every sink has: where it is missing, it must stay missing. */
function optional(sink: EndpointSink): Partial<EndpointSink> {
  const receipts = sink.receipts?.bind(sink)
  const nodes = sink.nodes?.bind(sink)
  const streams = sink.streams?.bind(sink)
  const dropOne = sink.dropOne?.bind(sink)
  const isConnected = sink.isConnected?.bind(sink)
  const drop = sink.drop?.bind(sink)
  const listen = sink.listen?.bind(sink)
  return {
    ...(receipts && { receipts }),
    ...(nodes && { nodes }),
    ...(streams && { streams }),
    ...(dropOne && { dropOne }),
    ...(isConnected && { isConnected }),
    ...(drop && { drop }),
    ...(listen && { listen }),
  }
}
