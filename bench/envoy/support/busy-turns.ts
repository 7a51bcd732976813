/** The most that one turn of the event loop worked, in milliseconds of CPU; 0 where Node.js does not tell (before 23.9). */
export class BusyTurns {
  #most = 0
  #isOver = true

  start(): void {
    this.#most = 0
    this.#isOver = false
    let before = this.#used()
    const turn = (): void => {
      const now = this.#used()
      this.#most = Math.max(this.#most, now - before)
      before = this.#used()
      if (!this.#isOver) setImmediate(turn)
    }
    setImmediate(turn)
  }

  stop(): number {
    this.#isOver = true
    return this.#most
  }

  #used(): number {
    if (!('threadCpuUsage' in process)) return 0
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  }
}
