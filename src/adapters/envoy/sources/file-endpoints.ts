import { resolve } from 'node:path'
import * as z from 'zod/mini'
import { pathOption } from '../../../kit/options.js'
import { DrainableError } from '../../../provider/error.js'
import { nonEmpty } from '../../../provider/option-schemas.js'
import { parseOptions } from '../../../provider/options.js'
import { printable, quote } from '../../../provider/quote.js'
import type { Assignment } from '../codec/assignment.js'
import { EdsFile } from './eds-file.js'
import type { EndpointSink, Published } from './sink.js'

/** Options of {@link fileEndpoints}: one cluster and its file. */
export interface FileEndpointsOptions {
  /** The `cluster_name` of the endpoint set in the file: the cluster's EDS service name, usually its own name. */
  readonly cluster: string
  /**
   * The file of the cluster's `path_config_source`, ending in `.json`, `.yaml` or `.yml`. It must exist and hold only
   * this full set, because Envoy refuses a file with several. A symbolic link is refused: Envoy notices only a file
   * that is moved onto the path.
   *
   * YAML needs the package `yaml` beside this one. A file with comments, anchors or aliases in the set is read but
   * not written, because they would be lost.
   */
  readonly path: string
}

const file = z.strictObject({
  cluster: nonEmpty(),
  path: pathOption().check(
    z.refine(
      (path) => /\.(?:json|ya?ml)$/.test(path),
      'expected a file ending in .json, .yaml or .yml: Envoy chooses its reader by the ending',
    ),
  ),
})

const schema = z.strictObject({
  files: z.array(file).check(
    z.minLength(1, 'expected at least one { cluster, path }'),
    z.superRefine((files, ctx) => {
      for (const [i, { cluster, path }] of files.entries()) {
        const before = files.slice(0, i)
        const twice = (key: string, message: string): void =>
          ctx.addIssue({ code: 'custom', path: [i, key], message })
        if (before.some((other) => other.cluster === cluster))
          twice('cluster', `'${quote(cluster, 80)}' is there twice`)
        if (before.some((other) => resolve(other.path) === resolve(path)))
          twice('path', 'is there twice: Envoy refuses a file with more than one set')
      }
    }),
  ),
})

/**
 * Makes a sink for endpoint sets in files that Envoy watches (`path_config_source`), one per cluster.
 *
 * The state outlives the process, so it suits scripts, hooks and single hosts. Envoy notices only a file that is
 * moved onto the path, so every change writes a new file in the same folder and renames it.
 *
 * @param options - one cluster and its file, or a list of them
 * @throws `INVALID_OPTIONS`
 */
export function fileEndpoints(
  options: FileEndpointsOptions | readonly FileEndpointsOptions[],
): EndpointSink {
  if (!Array.isArray(options)) {
    const { cluster, path } = parseOptions(file, options, 'fileEndpoints()')
    return new FileEndpoints([{ cluster, path }])
  }
  return new FileEndpoints(parseOptions(schema, { files: options }, 'fileEndpoints()').files)
}

class FileEndpoints implements EndpointSink {
  readonly kind = 'file'
  readonly instance: string
  readonly lateBound = 0
  readonly #files: readonly EdsFile[]

  constructor(files: readonly FileEndpointsOptions[]) {
    this.#files = files.map(({ cluster, path }) => new EdsFile(cluster, resolve(path)))
    const paths = files.map(({ path }) => printable(resolve(path)))
    this.instance = `file:${paths.sort().join(',')}`
  }

  /** One that can't be read keeps all of them from being read: a set that is not there would mean members that are gone. */
  async load(): Promise<ReadonlyMap<string, Published>> {
    return new Map(
      await Promise.all(
        this.#files.map(async (file) => [file.cluster, await file.load()] as const),
      ),
    )
  }

  async publish(set: Assignment, signal?: AbortSignal, expected?: Assignment): Promise<Published> {
    const file = this.#files.find(({ cluster }) => cluster === set.cluster)
    if (file === undefined) {
      const words = `${this.instance} has no file for the endpoint set '${quote(set.cluster, 80)}'`
      throw new DrainableError('INVALID_OPTIONS', words)
    }
    return await file.publish(set, signal, expected)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
