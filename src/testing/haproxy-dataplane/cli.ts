/** What a line on HAProxy's stats socket was answered with. */
export interface CliReply {
  /** HAProxy's severity: 3 and below are errors; undefined for plain data and for silent success. */
  readonly severity: number | undefined
  readonly text: string
}

/**
 * HAProxy as the API reaches it: lines on a stats socket. One in memory (`memory-haproxy.ts`), one
 * over a real socket (`socket-haproxy.ts`).
 */
export interface HaproxyCli {
  /** The socket's name, as the API prints it. */
  readonly socket: string
  /**
   * One line.
   *
   * @throws where HAProxy can't be reached
   */
  run(line: string): Promise<CliReply>
  /**
   * A reload with this configuration.
   *
   * @returns what the master said
   * @throws where HAProxy refuses the configuration; the message is its complaint
   */
  reload(config: string): Promise<string>
}
