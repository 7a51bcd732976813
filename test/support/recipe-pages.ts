/** The recipes of the docs as functions, loaded from the text of their pages. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, vi } from 'vitest'
import { blocksOf, pages } from '../docs/pages.js'

export type Recipe = (...args: never[]) => unknown

let folder: string
const recipes = new Map<string, (name: string) => Promise<Recipe>>()
const told = ['tasks', 'after-a-crash', 'fixed-timers', 'questions'].map(
  (name) => `docs/${name}.md`,
)

/** The heading that a line stands under. */
function headingOf(text: string, line: number): string {
  return (
    text
      .split('\n')
      .slice(0, line)
      .findLast((one) => one.startsWith('## '))
      ?.slice(3) ?? ''
  )
}

const blocks = pages
  .filter(({ path }) => told.includes(path))
  .flatMap((page) => blocksOf(page).map((block) => ({ ...block, whole: page.text })))
for (const block of blocks) {
  const found = block.text.matchAll(/^export (?:async )?function (\w+)/gm)
  const functions = [...found].map(([, name = '']) => name)
  const isScript = block.language === 'ts' && functions.length === 0
  for (const name of isScript ? ['script'] : functions) {
    const key = `${headingOf(block.whole, block.line)}: ${name}`
    recipes.set(key, async (own) => {
      const path = join(folder, `${block.line}-${own}.ts`)
      // The paths and the port of a reader's own place.
      const text = block.text
        .replaceAll(/\/var\/lib\/\w+/g, join(folder, own))
        .replaceAll('8080', '80')
      await writeFile(path, text)
      const run = (): Promise<unknown> => import(/* @vite-ignore */ path)
      return isScript ? run : (((await run()) as Record<string, Recipe>)[name] as Recipe)
    })
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drainable-recipes-'))
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  return () => rm(folder, { recursive: true, force: true })
})
afterAll(() => {
  vi.restoreAllMocks()
  // What a recipe resumes it holds for as long as its process lives: it has no handle to end that by.
  Reflect.deleteProperty(globalThis, Symbol.for('drainable.balancers.1'))
})

const run = new Set<string>()

/** Those that no test has asked for. */
export const notRun = (): readonly string[] => [...recipes.keys()].filter((key) => !run.has(key))

export interface Loaded<F> {
  readonly call: F
  readonly folder: string
}

/**
 * A recipe by the heading it stands under and its name: `Roll a fleet: deploy`. Each is loaded with folders of its own.
 * A whole script has the name `script`, and runs when it is called.
 */
export async function recipe(key: string, place = ''): Promise<Loaded<Recipe>> {
  run.add(key)
  const load = recipes.get(key)
  if (load === undefined) throw new Error(`no page has a recipe ${key}`)
  const name = `${key.replaceAll(/\W+/g, '-')}${place}`
  return { call: await load(name), folder: join(folder, name) }
}
