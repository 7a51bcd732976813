/** Who imports whom in `src`, read from the sources themselves. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { root } from '../../../scripts/package/entries.ts'

export interface Import {
  /** A path from the repository's root for our own files, else the name of a package. */
  readonly to: string
  readonly own: boolean
  /** Erased at build: `import type`, or every name in it marked so. */
  readonly typeOnly: boolean
}

/** Every source file, by its path from the repository's root. Generated code is left out. */
export const graph: ReadonlyMap<string, readonly Import[]> = new Map(
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.includes('/gen/'))
    .map((file) => join('src', file))
    .map((file) => [file, importsOf(file)]),
)

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const found: Import[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) add(node.moduleSpecifier, isTypeImport(node.importClause))
    else if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, isTypeExport(node))
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true)
    } else if (
      ts.isCallExpression(node) &&
      (node.expression.kind === ts.SyntaxKind.ImportKeyword ||
        node.expression.getText() === 'require')
    ) {
      add(node.arguments[0], false)
    }
    ts.forEachChild(node, visit)
  }
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return
    const name = specifier.text
    if (name.startsWith('.')) {
      const to = relative(root, join(root, dirname(file), name)).replace(/\.js$/, '.ts')
      found.push({ to, own: true, typeOnly })
    } else if (!name.startsWith('node:')) {
      if (builtinModules.includes(name)) throw new Error(`${file} imports ${name} without node:`)
      const to = name.split('/', name.startsWith('@') ? 2 : 1).join('/')
      found.push({ to, own: false, typeOnly })
    }
  }
  visit(source)
  return found
}

function isTypeImport(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  const names = clause.namedBindings
  return (
    clause.name === undefined &&
    names !== undefined &&
    ts.isNamedImports(names) &&
    names.elements.length > 0 &&
    names.elements.every((element) => element.isTypeOnly)
  )
}

function isTypeExport(node: ts.ExportDeclaration): boolean {
  const clause = node.exportClause
  return (
    node.isTypeOnly ||
    (clause !== undefined &&
      ts.isNamedExports(clause) &&
      clause.elements.length > 0 &&
      clause.elements.every((element) => element.isTypeOnly))
  )
}

/** All that is loaded when this file is: its own files and the packages, types aside. */
export function loadedBy(file: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set<string>()
  const packages = new Set<string>()
  const visit = (at: string): void => {
    if (files.has(at)) return
    files.add(at)
    for (const item of graph.get(at) ?? []) {
      if (item.typeOnly) continue
      if (item.own) visit(item.to)
      else packages.add(item.to)
    }
  }
  visit(file)
  return { files, packages }
}

/** The first loop found, as the files on its way; `undefined` when there is none. */
export function findCycle(): readonly string[] | undefined {
  const done = new Set<string>()
  const path: string[] = []
  const visit = (file: string): readonly string[] | undefined => {
    if (done.has(file)) return undefined
    const at = path.indexOf(file)
    if (at >= 0) return [...path.slice(at), file]
    path.push(file)
    for (const item of graph.get(file) ?? []) {
      if (!item.own || item.typeOnly) continue
      const loop = visit(item.to)
      if (loop !== undefined) return loop
    }
    path.pop()
    done.add(file)
    return undefined
  }
  for (const file of graph.keys()) {
    const loop = visit(file)
    if (loop !== undefined) return loop
  }
  return undefined
}

export function fileExists(file: string): boolean {
  return existsSync(join(root, file))
}
