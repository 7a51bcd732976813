import { randomBytes } from 'node:crypto'
import { lstatSync, renameSync, type BigIntStats } from 'node:fs'
import { lstat, open, readFile, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { printable, quote } from '../../../provider/quote.js'
import { problemError, type Assignment } from '../codec/assignment.js'
import { edsSteps, formatEdsJson, JsonAssignment, type EdsDocument } from '../codec/json.js'
import { formatEdsYaml, parseEdsYaml } from '../codec/yaml.js'
import { inTurns } from './in-turns.js'
import { NotPublished, Superseded, type Published } from './sink.js'
import { importYaml, isYaml } from './yaml-package.js'

/** Troubles of a file system that pass without a change of what is asked for. */
const PASSING = new Set(['EAGAIN', 'EBUSY', 'EDQUOT', 'EINTR', 'EMFILE', 'ENFILE', 'ENOSPC'])

interface Known {
  readonly stamp: string
  readonly text: string
  readonly document: EdsDocument
  readonly at: Published
}

/** One file that Envoy watches, with the set of one cluster. */
export class EdsFile {
  readonly #cluster: string
  readonly #path: string
  #known: Known | undefined
  #seq = 0

  constructor(cluster: string, path: string) {
    this.#cluster = cluster
    this.#path = path
  }

  get cluster(): string {
    return this.#cluster
  }

  async load(): Promise<Published> {
    return (await this.#read()).at
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    signal?.throwIfAborted()
    if (!(set instanceof JsonAssignment)) {
      throw new DrainableError(
        'INVALID_OPTIONS',
        `file:${printable(this.#path)} holds JSON sets only`,
      )
    }
    const { document, stamp, at: found, text: before } = await this.#read()
    if (expected !== undefined && found.set !== expected)
      throw new Superseded(printable(this.#path))
    const text = await this.#format(set, document, before)
    await this.#replace(text, stamp)
    const at = { set, seq: ++this.#seq, version: set.version }
    const next = { version: set.version, assignments: [set], rest: document.rest }
    this.#known = { stamp: await this.#stamp(), text, document: next, at }
    return at
  }

  async #read(): Promise<Known> {
    const stamp = await this.#stamp()
    if (this.#known?.stamp === stamp) return this.#known
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (cause) {
      throw this.#unreadable(cause)
    }
    const document = await this.#parse(text)
    const names = document.assignments.map(({ cluster }) => `'${quote(cluster, 80)}'`)
    const set = document.assignments.find((found) => found.cluster === this.#cluster)
    if (set === undefined) {
      throw new DrainableError(
        'NOT_FOUND',
        `${this.#path} holds no endpoint set named '${this.#cluster}', it holds ${names.length === 0 ? 'none' : quote(names.join(', '), 400)}: give the cluster_name of the set`,
      )
    }
    if (names.length > 1) {
      throw new DrainableError(
        'MALFORMED_REPLY',
        `${this.#path} holds ${names.length} endpoint sets (${quote(names.join(', '), 400)}): Envoy refuses a file with more than one; give each cluster a file of its own`,
      )
    }
    if (set.endpoints.length === 0) {
      throw new DrainableError(
        'MALFORMED_REPLY',
        `${this.#path}: the endpoint set '${this.#cluster}' is empty, nothing is published over it`,
      )
    }
    const at = { set, seq: ++this.#seq, version: document.version ?? '' }
    this.#known = { stamp, text, document, at }
    return this.#known
  }

  async #parse(text: string): Promise<EdsDocument> {
    const yaml = isYaml(this.#path) ? await importYaml(this.#path) : undefined
    try {
      return yaml === undefined ? await inTurns(edsSteps(text)) : parseEdsYaml(yaml, text)
    } catch (problem) {
      throw problemError(problem, 'MALFORMED_REPLY', this.#path)
    }
  }

  async #format(set: JsonAssignment, { rest }: EdsDocument, before: string): Promise<string> {
    if (!isYaml(this.#path)) return formatEdsJson(set.version, [set], rest)
    const yaml = await importYaml(this.#path)
    try {
      return formatEdsYaml(yaml, before, set)
    } catch (problem) {
      const error = problemError(problem, 'REJECTED', this.#path)
      throw isDrainableError(error) ? new NotPublished(error) : error
    }
  }

  async #stamp(): Promise<string> {
    try {
      const found = await lstat(this.#path, { bigint: true })
      if (found.isSymbolicLink()) throw this.#linked()
      return stampOf(found)
    } catch (cause) {
      throw isDrainableError(cause) ? cause : this.#unreadable(cause)
    }
  }

  /** Writes beside the file and moves it there, unless another writer was faster. */
  async #replace(text: string, stamp: string): Promise<void> {
    const name = `.${basename(this.#path)}.${randomBytes(6).toString('hex')}.tmp`
    const temporary = join(dirname(this.#path), name)
    try {
      const { mode } = await stat(this.#path)
      const file = await open(temporary, 'wx', mode & 0o777)
      try {
        await file.chmod(mode & 0o777)
        await file.writeFile(text)
        await file.sync()
      } finally {
        await file.close()
      }
      // Nothing of this process comes between the two, and of another one hardly anything.
      if (stampOf(lstatSync(this.#path, { bigint: true })) !== stamp)
        throw new Superseded(printable(this.#path))
      renameSync(temporary, this.#path)
    } catch (cause) {
      await unlink(temporary).catch(() => undefined)
      if (cause instanceof Superseded) throw cause
      throw new NotPublished(
        isDrainableError(cause) ? cause : this.#unwritable(cause as NodeJS.ErrnoException),
      )
    }
  }

  /** A file moved onto a link replaces the link, and one moved elsewhere is not noticed. */
  #linked(): DrainableError {
    return new DrainableError(
      'INVALID_OPTIONS',
      `${this.#path} is a symbolic link, as in a mounted ConfigMap: Envoy notices only a file that is moved onto this path, and that would put an end to the link; give path, and the cluster's path_config_source, the file itself, or let the owner of the file drain with callbackEndpoints()`,
    )
  }

  #unreadable(cause: unknown): DrainableError {
    const { code } = cause as NodeJS.ErrnoException
    const what = `${this.#path} cannot be read (${code ?? String(cause)})`
    if (code === 'ENOENT') {
      return new DrainableError(
        'UNREACHABLE',
        `${what}: it must hold the full endpoint set of '${this.#cluster}' before anything is drained`,
        { cause },
      )
    }
    return new DrainableError(code === 'EACCES' ? 'FORBIDDEN' : 'UNREACHABLE', what, { cause })
  }

  #unwritable(cause: NodeJS.ErrnoException): DrainableError {
    const denied = ['EACCES', 'EPERM', 'EROFS'].includes(cause.code ?? '')
    return new DrainableError(
      denied ? 'FORBIDDEN' : 'REJECTED',
      `${this.#path} cannot be replaced (${cause.code ?? cause.message}): the folder must be writable, Envoy notices only a file that is moved there`,
      { cause, retryable: PASSING.has(cause.code ?? '') },
    )
  }
}

/** Another file, or another content, has another stamp. */
function stampOf({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino}:${size}:${mtimeNs}`
}
