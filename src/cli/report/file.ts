import {
  closeSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { extname, resolve } from 'node:path'
import { DrainableError, isDrainableError } from '../../provider/error.js'
import { quote } from '../../provider/quote.js'

/** A page under one of these names would be opened by a program that can't read it. */
const OTHER_FORMATS = new Set(['.pdf', '.svg', '.png', '.json', '.jsonl', '.csv', '.md', '.txt'])

/** A file that is written whole or not at all: it takes its place once it is complete. */
export class ReportFile {
  readonly path: string
  readonly #draft: string

  /**
   * Tries whether the file can be written, and leaves what is there as it is.
   *
   * @throws `INVALID_OPTIONS` if it can't
   */
  constructor(named: string) {
    try {
      this.path = placeOf(named)
      this.#draft = `${this.path}.${process.pid}.tmp`
      closeSync(openSync(this.#draft, 'wx'))
      rmSync(this.#draft)
    } catch (error) {
      if (isDrainableError(error)) throw error
      throw refused(named, reasonOf((error as NodeJS.ErrnoException).code), error)
    }
  }

  write(text: string): void {
    try {
      writeFileSync(this.#draft, text, { flag: 'wx' })
      renameSync(this.#draft, this.path)
    } catch (error) {
      rmSync(this.#draft, { force: true })
      throw error
    }
  }
}

/** Where the file is, behind symbolic links. */
function placeOf(named: string): string {
  if (named === '') throw refused(named, 'the name is empty')
  if (OTHER_FORMATS.has(extname(named).toLowerCase()))
    throw refused(named, 'the report is an HTML page: let its name end in .html')
  const path = resolve(named)
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return path
  // To take the place of a device or a pipe would destroy it.
  if (!found.isFile()) throw refused(named, 'it is there, and is no regular file')
  return realpathSync(path)
}

function reasonOf(code: string | undefined): string {
  return code === 'ENOENT' ? 'ENOENT: its folder does not exist' : (code ?? 'an unknown error')
}

function refused(named: string, why: string, cause?: unknown): DrainableError {
  return new DrainableError(
    'INVALID_OPTIONS',
    `--report: the file '${quote(named)}' can not be written (${why}); nothing was changed`,
    { cause },
  )
}
