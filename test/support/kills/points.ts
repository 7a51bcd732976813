import { say } from './said.js'

/** Counts the points at which a process touches the world, says each, and dies at one of them. */
export class Points {
  #passed = 0
  readonly #killAt: number

  constructor(killAt: number) {
    this.#killAt = killAt
  }

  /** Says a point; true where it is the last. */
  reach(label: string): boolean {
    this.#passed += 1
    say({ verb: 'point', label })
    return this.#passed === this.#killAt
  }

  /** A point at which there is nothing to finish before the end. */
  pass(label: string): void {
    if (this.reach(label)) die()
  }
}

export function die(): never {
  process.kill(process.pid, 'SIGKILL')
  throw new Error('killed')
}
