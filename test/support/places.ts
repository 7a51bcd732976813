/** A program of a reader with this machine's places for those that it names. Each must stand in it. */
export function withPlaces(
  name: string,
  program: string,
  places: Readonly<Record<string, string>>,
): string {
  let text = program
  for (const [from, to] of Object.entries(places)) {
    if (!text.includes(from)) throw new Error(`${name} does not say ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}
