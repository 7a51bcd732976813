import type { Io } from '../io.js'
import { plainPrinter } from '../printer/plain.js'
import type { Printer } from '../printer/printer.js'

export function livePrinter(io: Io): Printer {
  return plainPrinter(io)
}
