/** The command in this process: with streams, an environment and signals of a test's own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { EndSignal, Io, Output } from '../../src/cli/io.js'
import { run } from '../../src/cli/run.js'
import { lineSchema, resultSchema } from '../../src/cli/schema/result.js'

/** A stream that keeps what is written. */
export class TestOutput implements Output {
  text = ''
  isClosed = false
  columns: number | undefined
  rows: number | undefined
  /** Called for each piece of text that is written. */
  onWrite: (text: string) => void = () => undefined
  #resized: () => void = () => undefined
  #closed: () => void = () => undefined

  constructor(columns?: number, rows?: number) {
    this.columns = columns
    this.rows = rows
  }

  write(text: string): boolean {
    if (!this.isClosed) this.text += text
    this.onWrite(text)
    return true
  }

  onResize(resized: () => void): () => void {
    this.#resized = resized
    return () => (this.#resized = () => undefined)
  }

  onClose(closed: () => void): void {
    this.#closed = closed
  }

  resize(columns: number, rows: number): void {
    this.columns = columns
    this.rows = rows
    this.#resized()
  }

  /** Nobody reads it any more, as after `| head -1`. */
  close(): void {
    this.isClosed = true
    this.#closed()
  }
}

/** What the command has of the outside, in a test. Its tickets are in a folder of its own. */
export class TestIo implements Io, Disposable {
  readonly home = mkdtempSync(join(tmpdir(), 'drainable-cli-'))
  readonly stdout: TestOutput
  readonly stderr: TestOutput
  readonly env: Record<string, string | undefined>
  /** The status with which the process was ended at once; undefined if it was not. */
  ended: number | undefined
  #heard: ((signal: EndSignal) => void)[] = []

  constructor(env: Record<string, string> = {}, { columns, rows }: Size = {}) {
    this.env = { PATH: process.env['PATH'], ...env }
    this.stdout = new TestOutput(columns, rows)
    this.stderr = new TestOutput(columns, rows)
  }

  readonly onSignal = (heard: (signal: EndSignal) => void): (() => void) => {
    this.#heard.push(heard)
    return () => {
      this.#heard = this.#heard.filter((one) => one !== heard)
    }
  }

  readonly exitNow = (code: number): void => {
    this.ended ??= code
  }

  signal(name: EndSignal): void {
    for (const heard of this.#heard) heard(name)
  }

  /** Runs the command with these streams, as they are. */
  run(...argv: readonly string[]): Promise<number> {
    return run(argv, this)
  }

  /** Runs the command alone: what it prints, and its status. */
  async play(...argv: readonly string[]): Promise<Played> {
    this.stdout.text = ''
    this.stderr.text = ''
    const code = await this.run(...argv)
    return { code, out: this.stdout.text, err: this.stderr.text }
  }

  /** The document of `--json`, which must fit its schema and have the status of the process. */
  async document(verb: string, ...more: readonly string[]): Promise<Document> {
    const { code, out } = await this.play(verb, '--json', ...more)
    const document = JSON.parse(out) as Document
    expect(resultSchema.safeParse(document).error?.message).toBeUndefined()
    expect(document.exitCode).toBe(code)
    return document
  }

  /** The lines of `--jsonl`, each of which must fit its schema. */
  async lines(verb: string, ...more: readonly string[]): Promise<readonly Document[]> {
    const { out } = await this.play(verb, '--jsonl', ...more)
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Document)
    for (const line of lines) {
      expect(lineSchema.safeParse(line).error?.message, JSON.stringify(line)).toBeUndefined()
    }
    return lines
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true })
  }
}

interface Size {
  readonly columns?: number
  readonly rows?: number
}

export interface Played {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** A document of any verb, as far as tests read it. */
export interface Document {
  readonly exitCode: number
  readonly type?: string
  readonly changed?: boolean
  readonly ticket?: string
  readonly error?: { readonly code: string; readonly message: string }
  readonly leftAsFound?: readonly string[]
  readonly command?: { readonly status: number | null; readonly signal: string | null }
  readonly report?: {
    readonly outcome: string
    readonly members: readonly { readonly outcome: string; readonly verifiedIdle: boolean }[]
  }
  readonly ready?: { readonly members: readonly unknown[] }
  readonly roll?: { readonly outcome: string }
  readonly members?: readonly { readonly ref: { readonly member: string }; readonly own: string }[]
  readonly orphans?: readonly { readonly ticket: string }[]
  readonly plan?: { readonly text: string }
}
