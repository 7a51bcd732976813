import { randomBytes } from 'node:crypto'
import { lstatSync, renameSync, type BigIntStats } from 'node:fs'
import { lstat, open, readFile, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import { DrainableError, isDrainableError } from '../../../provider/error.js'
import { printable, quote } from '../../../provider/quote.js'
import { parseOptions } from '../../../provider/options.js'
import { AssignmentProblem, type Assignment } from '../codec/assignment.js'
import { formatEdsJson, JsonAssignment, parseEdsJson, type EdsDocument } from '../codec/json.js'
import { NotPublished, Superseded, type EndpointSink, type Published } from './sink.js'

/** Options of {@link fileEndpoints}. */
export interface FileEndpointsOptions {
  /** `cluster_name` of the endpoint set in the file: the cluster's EDS service name, mostly its own name. */
  readonly cluster: string
  /**
   * The file of the cluster's `path_config_source`, ending in `.json`. It must exist: it holds the full set.
   * A symbolic link is refused: Envoy notices only what is moved onto the path.
   */
  readonly path: string
}

/** Troubles of a file system that pass without anybody changing what is asked for. */
const PASSING = new Set(['EAGAIN', 'EBUSY', 'EDQUOT', 'EINTR', 'EMFILE', 'ENFILE', 'ENOSPC'])

const schema = z.strictObject({
  cluster: z.string().min(1),
  path: z
    .string()
    .min(1)
    .refine(
      (path) => path.endsWith('.json'),
      'expected a file ending in .json: Envoy chooses its reader by the ending',
    ),
})

/**
 * Endpoint sets in a file that Envoy watches (`path_config_source`).
 *
 * The state outlives the process: the sink for scripts, hooks and single hosts. Envoy notices only a
 * file that is moved onto the path, so every change is a new file in the same folder and a rename.
 *
 * @throws `INVALID_OPTIONS`
 */
export function fileEndpoints(options: FileEndpointsOptions): EndpointSink {
  const { cluster, path } = parseOptions(schema, options, 'fileEndpoints()')
  return new FileEndpoints(cluster, resolve(path))
}

class FileEndpoints implements EndpointSink {
  readonly kind = 'file'
  readonly instance: string
  readonly lateBound = 0
  readonly #cluster: string
  readonly #path: string
  #known:
    { readonly stamp: string; readonly document: EdsDocument; readonly at: Published } | undefined
  #seq = 0

  constructor(cluster: string, path: string) {
    this.#cluster = cluster
    this.#path = path
    this.instance = `file:${printable(path)}`
  }

  async load(): Promise<ReadonlyMap<string, Published>> {
    const { at } = await this.#read()
    return new Map([[this.#cluster, at]])
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    signal?.throwIfAborted()
    if (!(set instanceof JsonAssignment)) {
      throw new DrainableError('INVALID_OPTIONS', `${this.instance} holds JSON sets only`)
    }
    const { document, stamp, at: found } = await this.#read()
    if (expected !== undefined && found.set !== expected)
      throw new Superseded(printable(this.#path))
    const others = document.assignments.map((found) =>
      found.cluster === this.#cluster ? set : found,
    )
    const text = formatEdsJson(set.version, others, document.rest)
    await this.#replace(text, stamp)
    const at = { set, seq: ++this.#seq, version: set.version }
    const next = { version: set.version, assignments: others, rest: document.rest }
    this.#known = { stamp: await this.#stamp(), document: next, at }
    return at
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  async #read(): Promise<{ stamp: string; document: EdsDocument; at: Published }> {
    const stamp = await this.#stamp()
    if (this.#known?.stamp === stamp) return this.#known
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (cause) {
      throw this.#unreadable(cause)
    }
    const document = this.#parse(text)
    const set = document.assignments.find((found) => found.cluster === this.#cluster)
    if (set === undefined) {
      const found = document.assignments.map((other) => `'${quote(other.cluster, 80)}'`)
      throw new DrainableError(
        'NOT_FOUND',
        `${this.#path} holds no endpoint set named '${this.#cluster}', it holds ${found.length === 0 ? 'none' : quote(found.join(', '), 400)}: give the cluster_name of the set`,
      )
    }
    if (set.endpoints.length === 0) {
      throw new DrainableError(
        'MALFORMED_REPLY',
        `${this.#path}: the endpoint set '${this.#cluster}' is empty, nothing is published over it`,
      )
    }
    const at = { set, seq: ++this.#seq, version: document.version ?? '' }
    this.#known = { stamp, document, at }
    return this.#known
  }

  #parse(text: string): EdsDocument {
    try {
      return parseEdsJson(text)
    } catch (problem) {
      if (!(problem instanceof AssignmentProblem)) throw problem
      throw new DrainableError('MALFORMED_REPLY', `${this.#path}: ${problem.toString()}`)
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

  /** Writes beside the file and moves it there, unless somebody else was faster. */
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
