/**
 * Lets a script run on the sources, without a build: `node --import ./scripts/source.mjs script.ts`.
 *
 * The package's own names resolve as tsconfig.json says, and a relative `./x.js` is `./x.ts` where only that exists.
 */
import { existsSync, readFileSync } from 'node:fs'
import { enableCompileCache, registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

// A process of a test begins in a third of the time: what the one before has read of the sources is kept (in the folder for
// temporary files, unless NODE_COMPILE_CACHE names another).
enableCompileCache()

const root = new URL('../', import.meta.url)
const { compilerOptions } = JSON.parse(readFileSync(new URL('tsconfig.json', root), 'utf8'))

registerHooks({
  resolve(specifier, context, next) {
    const own = compilerOptions.paths[specifier]?.[0]
    if (own !== undefined) return next(new URL(own, root).href, context)
    if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.startsWith(root.href)) {
      const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
      if (existsSync(fileURLToPath(source))) return next(source.href, context)
    }
    return next(specifier, context)
  },
})
