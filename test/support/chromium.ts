/** A headless Chromium: what a page looks like to a reader, and what it asks for. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { isCi, saySkipped } from './skipped.js'

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']

/**
 * The program, of which `DRAINABLE_CHROMIUM` can name another. A missing one is said; under `CI` it is an error.
 */
export function findChromium(): string | undefined {
  const named = process.env['DRAINABLE_CHROMIUM']
  const names = named === undefined ? NAMES : [named]
  const found = names.find((name) => spawnSync(name, ['--version']).status === 0)
  if (found !== undefined) return found
  const words = `no Chromium to open pages with (${names.join(', ')}): apt-get install chromium-headless-shell`
  if (isCi()) throw new Error(words)
  saySkipped(words)
  return undefined
}

/** What a page did while it was open. */
export interface Seen {
  /** Errors and warnings of the console, and what the browser logged. */
  readonly console: readonly string[]
  /** Addresses that were asked for, the page's own aside. */
  readonly requests: readonly string[]
}

/** The screen that a page is opened on. */
export interface ScreenOptions {
  readonly width: number
  readonly scheme?: 'light' | 'dark'
  readonly media?: 'screen' | 'print'
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

/** An open page. */
export interface Tab {
  /** A call of the browser's own protocol. */
  call(method: string, params?: object): Promise<Record<string, unknown>>
  /** Its next event of this name. */
  once(name: string): Promise<unknown>
  /** Evaluates an expression in the page, and waits for a promise; the answer must be JSON. */
  ask<T>(question: string): Promise<T>
  /** Types into what has the focus. */
  type(text: string): Promise<unknown>
}

function tabOf(call: Tab['call'], events: EventTarget): Tab {
  return {
    call,
    once: (name) => once(events, name),
    ask: async <T>(expression: string) => {
      const how = { expression, returnByValue: true, awaitPromise: true }
      const { result, exceptionDetails } = await call('Runtime.evaluate', how)
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
      return (result as { value: T }).value
    },
    type: (text) => call('Input.insertText', { text }),
  }
}

/** One browser; each page has a tab of its own. */
export class Chromium implements AsyncDisposable {
  readonly #socket: WebSocket
  readonly #end: () => Promise<void>
  readonly #waiting = new Map<number, (message: Message) => void>()
  readonly #heard = new Set<(message: Message) => void>()
  #calls = 0

  private constructor(socket: WebSocket, end: () => Promise<void>) {
    this.#socket = socket
    this.#end = end
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as Message
      if (message.id === undefined) for (const hear of this.#heard) hear(message)
      else this.#waiting.get(message.id)?.(message)
    })
  }

  static async start(program: string): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'chromium-'))
    const child = spawn(
      program,
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'],
        ...['--no-first-run', '--disable-background-networking', `--user-data-dir=${profile}`],
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const exited = once(child, 'exit')
    const end = async (): Promise<void> => {
      child.kill('SIGKILL')
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
    for await (const line of createInterface({ input: child.stderr })) {
      const [, address] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
      if (address === undefined) continue
      child.stderr.resume()
      const socket = new WebSocket(address)
      await once(socket, 'open')
      return new Chromium(socket, end)
    }
    await end()
    throw new Error(`${program} ended before it listened`)
  }

  /** Opens a page and asks it something in its own language; the answer must be JSON. */
  async ask<T>(html: string, question: string, screen: ScreenOptions): Promise<T & Seen> {
    return this.#inTab(screen, async (tab, seen) => {
      const { frameTree } = await tab.call('Page.getFrameTree')
      const { id: frameId } = (frameTree as { frame: { id: string } }).frame
      await tab.call('Page.setDocumentContent', { frameId, html })
      return { ...(await tab.ask<T>(question)), ...seen }
    })
  }

  /** Opens an address and uses the page as a reader does. */
  async visit<T>(
    url: string,
    screen: ScreenOptions,
    use: (tab: Tab, seen: Seen) => Promise<T>,
  ): Promise<T> {
    return this.#inTab(screen, async (tab, seen) => {
      const loaded = tab.once('Page.loadEventFired')
      await tab.call('Page.navigate', { url })
      await loaded
      return use(tab, seen)
    })
  }

  async #inTab<T>(screen: ScreenOptions, use: (tab: Tab, seen: Seen) => Promise<T>): Promise<T> {
    const { targetId } = await this.#call('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.#call('Target.attachToTarget', { targetId, flatten: true })
    const call = (method: string, params: object = {}): Promise<Record<string, unknown>> =>
      this.#call(method, params, String(sessionId))
    const seen = { console: [] as string[], requests: [] as string[] }
    const events = new EventTarget()
    const hear = ({ method = '', params, sessionId: of }: Message): void => {
      if (of !== sessionId) return
      events.dispatchEvent(new Event(method))
      if (method === 'Network.requestWillBeSent')
        seen.requests.push((params as { request: { url: string } }).request.url)
      if (/^(Log\.entryAdded|Runtime\.(consoleAPICalled|exceptionThrown))$/.test(method))
        seen.console.push(JSON.stringify(params))
    }
    this.#heard.add(hear)
    try {
      for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await call(`${domain}.enable`)
      const { width, scheme = 'light', media = 'screen' } = screen
      const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 }
      await call('Emulation.setDeviceMetricsOverride', metrics)
      const features = [{ name: 'prefers-color-scheme', value: scheme }]
      await call('Emulation.setEmulatedMedia', { media, features })
      // Without it only one tab of the browser has the focus, and the others hear no key.
      await call('Emulation.setFocusEmulationEnabled', { enabled: true })
      return await use(tabOf(call, events), seen)
    } finally {
      this.#heard.delete(hear)
      await this.#call('Target.closeTarget', { targetId })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await this.#end()
  }

  #call(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    this.#calls += 1
    const id = this.#calls
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    this.#waiting.set(id, ({ result = {}, error }) => {
      this.#waiting.delete(id)
      if (error === undefined) resolve(result)
      else reject(new Error(`${method}: ${error.message}`))
    })
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }))
    return promise
  }
}
