/** A headless Chromium: what a page looks like to a reader, and what it asks for. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
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
  /** Evaluates an expression in the page, and waits for a promise; the answer must be JSON. */
  ask<T>(question: string): Promise<T>
  /** Types into what has the focus. */
  type(text: string): Promise<unknown>
}

/** A tab that crashed or gives no answer: it says nothing of the page, and a fresh one may do. */
export class TabLost extends Error {}

function tabOf(call: Tab['call']): Tab {
  return {
    call,
    ask: async <T>(expression: string) => {
      const how = { expression, returnByValue: true, awaitPromise: true }
      const { result, exceptionDetails } = await call('Runtime.evaluate', how)
      if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
      return (result as { value: T }).value
    },
    type: (text) => call('Input.insertText', { text }),
  }
}

interface Waiting {
  readonly sessionId: string | undefined
  readonly settle: (message: Message) => void
  readonly lose: (reason: string) => void
}

/** A call is answered within this, in milliseconds, on a loaded machine too. */
const LIMIT = 10_000

/** One browser; each page has a tab of its own. Nothing here waits for ever: what is lost says what it was. */
export class Chromium implements AsyncDisposable {
  readonly #socket: WebSocket
  readonly #end: () => Promise<void>
  readonly #limit: number
  readonly #waiting = new Map<number, Waiting>()
  readonly #heard = new Set<(message: Message) => void>()
  #closed = false
  #calls = 0

  private constructor(socket: WebSocket, end: () => Promise<void>, limit: number) {
    this.#socket = socket
    this.#end = end
    this.#limit = limit
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as Message
      if (message.id !== undefined) return this.#waiting.get(message.id)?.settle(message)
      if (message.method === 'Inspector.targetCrashed') this.#lose('its tab crashed', message)
      for (const hear of this.#heard) hear(message)
    })
    socket.addEventListener('close', () => {
      this.#closed = true
      this.#lose('the browser closed its socket')
    })
  }

  /** `limit`: how long a call may take, in milliseconds. */
  static async start(program: string, { limit = LIMIT } = {}): Promise<Chromium> {
    const profile = await mkdtemp(join(tmpdir(), 'chromium-'))
    const child = spawn(
      program,
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0'],
        ...['--no-first-run', '--disable-background-networking', `--user-data-dir=${profile}`],
        // In a container /dev/shm may have 64 MB, and a tab that finds it full crashes.
        '--disable-dev-shm-usage',
        'about:blank',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'], detached: true },
    )
    const exited = once(child, 'exit')
    // Debian's program is a script that starts the browser: both are of one group.
    const kill = (): void => {
      if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    }
    const end = async (): Promise<void> => {
      kill()
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    }
    const silent = setTimeout(kill, 3 * LIMIT)
    try {
      for await (const line of createInterface({ input: child.stderr })) {
        const [, address] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
        if (address === undefined) continue
        child.stderr.resume()
        const socket = new WebSocket(address)
        await once(socket, 'open', { signal: AbortSignal.timeout(LIMIT) })
        return new Chromium(socket, end, limit)
      }
      throw new Error(`${program} ended before it listened`)
    } catch (error) {
      await end()
      throw error
    } finally {
      clearTimeout(silent)
    }
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
      const { errorText } = await tab.call('Page.navigate', { url })
      if (typeof errorText === 'string') throw new Error(`${url}: ${errorText}`)
      await this.#loaded(tab, url)
      return use(tab, seen)
    })
  }

  /**
   * Asks the document instead of an event: the load of the empty page that a tab begins with looks the same, and an address
   * of another kind gets a new process, which may load before anybody listens.
   */
  async #loaded(tab: Tab, url: string): Promise<void> {
    const { href } = new URL(url)
    const until = performance.now() + this.#limit
    let found: unknown
    while (performance.now() < until) {
      try {
        found = await tab.ask('[location.href, document.readyState].join(" ")')
      } catch (error) {
        if (error instanceof TabLost) throw error
        found = error
      }
      if (found === `${href} complete`) return
      await pause(10)
    }
    throw new TabLost(`${href} has not loaded within ${this.#limit} ms: ${String(found)}`)
  }

  /** A tab that is lost is tried once more: the page is judged by a tab that lives. */
  async #inTab<T>(screen: ScreenOptions, use: (tab: Tab, seen: Seen) => Promise<T>): Promise<T> {
    try {
      return await this.#inFreshTab(screen, use)
    } catch (error) {
      if (!(error instanceof TabLost) || this.#closed) throw error
      return this.#inFreshTab(screen, use)
    }
  }

  async #inFreshTab<T>(
    screen: ScreenOptions,
    use: (tab: Tab, seen: Seen) => Promise<T>,
  ): Promise<T> {
    const { targetId } = await this.#call('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await this.#call('Target.attachToTarget', { targetId, flatten: true })
    const call = (method: string, params: object = {}): Promise<Record<string, unknown>> =>
      this.#call(method, params, String(sessionId))
    const seen = { console: [] as string[], requests: [] as string[] }
    const hear = ({ method = '', params, sessionId: of }: Message): void => {
      if (of !== sessionId) return
      if (method === 'Network.requestWillBeSent')
        seen.requests.push((params as { request: { url: string } }).request.url)
      if (/^(Log\.entryAdded|Runtime\.(consoleAPICalled|exceptionThrown))$/.test(method))
        seen.console.push(JSON.stringify(params))
    }
    this.#heard.add(hear)
    try {
      for (const domain of ['Inspector', 'Page', 'Runtime', 'Log', 'Network'])
        await call(`${domain}.enable`)
      const { width, scheme = 'light', media = 'screen' } = screen
      const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 }
      await call('Emulation.setDeviceMetricsOverride', metrics)
      const features = [{ name: 'prefers-color-scheme', value: scheme }]
      await call('Emulation.setEmulatedMedia', { media, features })
      // Without it only one tab of the browser has the focus, and the others hear no key.
      await call('Emulation.setFocusEmulationEnabled', { enabled: true })
      return await use(tabOf(call), seen)
    } finally {
      this.#heard.delete(hear)
      // The browser ends with the tests: a tab that does not close harms nobody.
      await this.#call('Target.closeTarget', { targetId }).catch(() => undefined)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close()
    await this.#end()
  }

  #lose(reason: string, { sessionId }: Message = {}): void {
    for (const waiting of [...this.#waiting.values()])
      if (sessionId === undefined || waiting.sessionId === sessionId) waiting.lose(reason)
  }

  #call(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    if (this.#closed) return Promise.reject(new TabLost(`${method}: the browser closed its socket`))
    this.#calls += 1
    const id = this.#calls
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    const lose = (reason: string): void => {
      settled()
      reject(new TabLost(`${method}: ${reason}`))
    }
    const timer = setTimeout(() => lose(`no answer within ${this.#limit} ms`), this.#limit)
    const settled = (): void => {
      clearTimeout(timer)
      this.#waiting.delete(id)
    }
    const settle = ({ result = {}, error }: Message): void => {
      settled()
      if (error === undefined) resolve(result)
      else reject(new Error(`${method}: ${error.message}`))
    }
    this.#waiting.set(id, { sessionId, settle, lose })
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }))
    return promise
  }
}
