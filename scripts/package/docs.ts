/** `npm run docs`: the reference of every entry, into `docs/api`. A public name without a word about it is an error. */
import { Application, ReflectionKind, TSConfigReader, TypeDocReader } from 'typedoc'
import type { ProjectReflection, Reflection } from 'typedoc'
import { entries, present, root } from './entries.ts'

for (const item of entries) {
  if (!present.includes(item))
    console.error(`not documented, its source is missing: ${item.source}`)
}

const app = await Application.bootstrapWithPlugins(
  { options: root, entryPoints: present.map((item) => `${root}${item.source}`) },
  [new TypeDocReader(), new TSConfigReader()],
)
const project = await app.convert()
if (project !== undefined) {
  if (app.options.getValue('requiredToBeDocumented').includes('Property')) {
    app.options.setValue('intentionallyNotDocumented', variants(project))
  }
  app.validate(project)
  if (!app.logger.hasErrors() && !app.logger.hasWarnings()) await app.generateOutputs(project)
}
const failed = project === undefined || app.logger.hasErrors() || app.logger.hasWarnings()
process.exitCode = failed ? 1 : 0

/**
 * The fields of a variant written out in place (`{ kind: 'hold', to: ... } | { kind: 'remove' }`) are explained by the
 * comment of the type that they are part of. Those of an interface each need a comment.
 */
function variants(reference: ProjectReflection): string[] {
  const names = reference
    .getReflectionsByKind(ReflectionKind.Property)
    .filter((item) => item.parent?.kindOf(ReflectionKind.TypeLiteral) === true)
    .filter((item) => !isInSignature(item)) // the validation does not look there, and would call the name unused
    .filter((item) => !item.hasComment() && reference.getSymbolIdFromReflection(item) !== undefined)
    .map((item) => item.getFriendlyFullName())
  return [...new Set(names)]
}

function isInSignature(item: Reflection): boolean {
  const { parent } = item
  return parent !== undefined && (parent.kindOf(ReflectionKind.Parameter) || isInSignature(parent))
}
