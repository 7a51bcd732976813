import * as z from 'zod/mini'
import { systemClock } from '../../../provider/clock.js'
import type { Duration } from '../../../provider/duration.js'
import { durationOption, nonEmpty, whole } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import type { LoadReportSource } from '../sources/sink.js'
import { LoadBook } from './load-book.js'
import {
  bind,
  createServer,
  onMessage,
  type ByteStream,
  type Listening,
  type ServerTls,
} from './server.js'
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
  const { tls, ...rest } = parseOptions(schema, options, SUBJECT)
  return new LoadReportServer({ ...rest, tls: readTls(tls, SUBJECT) })
}

interface Settings {
  readonly host: string
  readonly port: number
  readonly interval: number
  readonly tls: ServerTls | undefined
}

class LoadReportServer implements LoadReportSource {
  readonly loads: LoadBook
  readonly #settings: Settings
  #names: () => readonly string[] = () => []
  #listening: Listening | undefined
  #opening: Promise<void> | undefined
  #closed = false

  constructor(settings: Settings) {
    this.#settings = settings
    const now = (): number => systemClock.now()
    const serves = (service: string): boolean => this.#names().includes(service)
    this.loads = new LoadBook(now, settings.interval, serves)
  }

  get address(): { host: string; port: number } | undefined {
    const port = this.#listening?.port
    return port === undefined ? undefined : { host: this.#settings.host, port }
  }

  open(names: () => readonly string[]): Promise<void> {
    this.#names = names
    this.#opening ??= this.#open()
    return this.#opening
  }

  close(): Promise<void> {
    this.#closed = true
    this.loads.close()
    this.#listening?.close()
    this.#listening = undefined
    return Promise.resolve()
  }

  async #open(): Promise<void> {
    const { host, port, tls } = this.#settings
    const server = createServer({
      loads: (stream) => takeLoads(stream, this.loads, () => this.#names()),
    })
    this.#listening = await bind(server, host, port, tls, SUBJECT)
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
