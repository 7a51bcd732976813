/** The longest hint, in characters: a longer one is cut when it is shown. */
const MOST = 900

/**
 * Lists names for people, as hints of limited length: `pools: a, b`, `pools, further: c`.
 *
 * @param what - the kind of names
 * @param names - each is listed once
 */
export function listed(what: string, names: readonly string[]): readonly string[] {
  const texts: string[] = []
  let text = ''
  for (const name of new Set(names)) {
    if (text !== '' && text.length + name.length > MOST) {
      texts.push(text)
      text = ''
    }
    text = text === '' ? name : `${text}, ${name}`
  }
  texts.push(text === '' ? 'none' : text)
  return texts.map((one, i) => `${what}${i === 0 ? '' : ', further'}: ${one}`)
}
