import type { EndpointSink, LoadReports } from './sink.js'

/** A server for load reports on its own port. Made by `loadReports()` of `drainable/envoy/grpc`. */
export interface LoadReportSource {
  /** The load that the proxies report. */
  readonly loads: LoadReports
  /** The address that it listens on; undefined before it does. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /**
   * Begins to listen.
   *
   * @param names - the endpoint sets to ask for
   */
  open(names: () => readonly string[]): Promise<void>
  /** Stops listening. The provider does it at its own close. */
  close(): Promise<void>
}

/** Adds load reports from another source to a sink. All its other capabilities stay the same. */
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

/** The optional methods of a sink: a missing one must stay missing. */
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
