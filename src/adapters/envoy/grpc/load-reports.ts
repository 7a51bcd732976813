import * as z from 'zod/mini'
import { systemClock } from '../../../provider/clock.js'
import type { Duration } from '../../../provider/duration.js'
import { durationOption, nonEmpty, whole } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import type { Listening } from '../sources/served-sink.js'
import type { LoadReportSource } from '../sources/sink.js'
import { LoadBook } from './load-book.js'
import { bind, createServer, onMessage, type ByteStream, type ServerTls } from './server.js'
import { readTls, tlsOption, type GrpcTls } from './tls.js'
import { decodeLoads, decodeNode, encodeLoads } from './xds-codec.js'

const SUBJECT = 'loadReports()'
const SEND_ALL = 'envoy.lrs.supports_send_all_clusters'

/** Options of {@link loadReports}. */
export interface LoadReportsOptions {
  /** Port to listen on; 0 takes a free one. */
  readonly port: number
  /** Address to listen on. @default '127.0.0.1' */
  readonly host?: string | undefined
  /** @default plain text (h2c) */
  readonly tls?: GrpcTls | undefined
  /** The pause between two reports while the provider looks, at least 100 ms. @default 250 ms */
  readonly interval?: Duration | undefined
}

const schema = z.strictObject({
  port: whole(0, 65_535),
  host: z._default(nonEmpty(), '127.0.0.1'),
  tls: z.exactOptional(tlsOption),
  interval: z._default(durationOption({ min: 100 }), 250),
})

/**
 * Makes a load report service (LRS) on its own port, for `loads` of `envoy()`: beside any sink, whichever control
 * plane owns the endpoint sets. Point proxies at it with `cluster_manager.load_stats_config` (Envoy 1.37 or newer).
 *
 * @throws `INVALID_OPTIONS`
 */
export function loadReports(options: LoadReportsOptions): LoadReportSource {
  return new LoadReportServer(parseOptions(schema, options, SUBJECT))
}

class LoadReportServer implements LoadReportSource {
  readonly loads: LoadBook
  readonly #settings: z.output<typeof schema>
  readonly #tls: ServerTls | undefined
  #names: () => readonly string[] = () => []
  #listening: Listening | undefined
  #opening: Promise<void> | undefined
  #closed = false

  constructor(settings: z.output<typeof schema>) {
    this.#settings = settings
    this.#tls = readTls(settings.tls, SUBJECT)
    const now = (): number => systemClock.now()
    const serves = (service: string): boolean => this.#names().includes(service)
    this.loads = new LoadBook(now, settings.interval, serves)
  }

  get address(): Listening['address'] | undefined {
    return this.#listening?.address
  }

  open(names: () => readonly string[]): Promise<void> {
    this.#names = names
    this.#opening ??= this.#open()
    return this.#opening
  }

  async close(): Promise<void> {
    this.#closed = true
    this.loads.close()
    await this.#listening?.close()
    this.#listening = undefined
  }

  async #open(): Promise<void> {
    const { host, port } = this.#settings
    const loads = (stream: ByteStream): void => takeLoads(stream, this.loads, () => this.#names())
    this.#listening = await bind(createServer({ loads }), host, port, this.#tls, SUBJECT)
    if (this.#closed) await this.close()
  }
}

/**
 * Takes the reports of one proxy.
 *
 * @param names - the sets to ask for, if the proxy can't be asked for all
 */
export function takeLoads(
  stream: ByteStream,
  book: LoadBook,
  names: () => readonly string[],
): void {
  const key = {}
  let known = false
  const end = (): void => book.end(key)
  onMessage(stream, (bytes) => {
    const { node, report } = decodeLoads(bytes)
    if (known) {
      book.report(key, report)
      return
    }
    const { id, version, features } = decodeNode(node)
    known = true
    const sendsAll = features.includes(SEND_ALL)
    book.begin(key, id, version, (interval) => {
      const clusters = sendsAll ? undefined : [...names()]
      stream.write(Buffer.from(encodeLoads(interval, clusters)))
    })
  })
  stream.on('end', () => {
    stream.end()
    end()
  })
  stream.on('error', end)
  stream.on('cancelled', end)
  stream.on('close', end)
}
