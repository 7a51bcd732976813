/**
 * EDS in YAML, as Envoy reads it from a `.yaml` or `.yml` file: the same messages as in JSON.
 *
 * A file is written back as it was around its sets: what stands before and after `resources` keeps its comments and its
 * order. Sets are written anew, in block style, each text in double quotes, because Envoy's reader takes a plain `yes` or
 * `1e3` for something else than YAML 1.2 does. Comments, anchors and aliases within the sets would be lost, so a file that
 * has them there is refused.
 */
import type * as Yaml from 'yaml'
import { quote } from '../../../provider/quote.js'
import { AssignmentProblem } from './assignment.js'
import { parseEdsValue, type EdsDocument, type JsonAssignment } from './json.js'

/** What is used of the package `yaml`. */
export type YamlPackage = Pick<
  typeof Yaml,
  'parseAllDocuments' | 'visit' | 'isMap' | 'isAlias' | 'isScalar'
>

/** @throws AssignmentProblem with the line or the path of what is wrong */
export function parseEdsYaml(yaml: YamlPackage, text: string): EdsDocument {
  const document = documentOf(yaml, text)
  let value: unknown
  try {
    value = document.toJS()
  } catch (cause) {
    throw new AssignmentProblem('', `not YAML: ${wordsOf(cause)}`)
  }
  return parseEdsValue(value)
}

/**
 * The text with another set and its version in it.
 *
 * @param before - the file as it was read
 * @throws AssignmentProblem where something would be lost
 */
export function formatEdsYaml(yaml: YamlPackage, before: string, set: JsonAssignment): string {
  const document = documentOf(yaml, before)
  const { contents } = document
  if (!yaml.isMap(contents)) throw new AssignmentProblem('', 'expected an object with resources')
  refuseLosses(yaml, contents.get('resources', true), before)
  document.set(contents.has('versionInfo') ? 'versionInfo' : 'version_info', set.version)
  document.set('resources', document.createNode([set.toJson()]))
  return document.toString({
    defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'PLAIN',
    lineWidth: 0,
  })
}

function documentOf(yaml: YamlPackage, text: string): Yaml.Document.Parsed {
  const [document, ...more] = yaml.parseAllDocuments(text)
  if (document === undefined || !('contents' in document)) {
    throw new AssignmentProblem('', 'expected an object with resources, found nothing')
  }
  const wrong = document.errors[0] ?? document.warnings[0]
  if (wrong !== undefined) throw new AssignmentProblem('', `not YAML: ${wordsOf(wrong)}`)
  if (more.length === 0) return document
  throw new AssignmentProblem('', `expected one YAML document, found ${more.length + 1}`)
}

/** Where and what of the sets can't be written back. */
function refuseLosses(yaml: YamlPackage, sets: unknown, text: string): void {
  let found: { readonly what: string; readonly at: number } | undefined
  const note = (what: string, at: number | undefined): void => {
    found ??= { what, at: at ?? 0 }
  }
  yaml.visit(sets as Yaml.Node, {
    Node: (_, node) => {
      const at = node.range?.[0]
      if (yaml.isAlias(node)) note('an alias', at)
      else if (node.anchor !== undefined) note('an anchor', at)
      if (node.comment != null || node.commentBefore != null) note('a comment', at)
    },
  })
  if (found === undefined) return
  const { what, at } = found
  const line = text.slice(0, at).split('\n').length
  throw new AssignmentProblem(
    `resources, near line ${line}`,
    `the endpoint sets hold ${what}, which would be lost when they are written back; nothing was changed: take it out of the sets (outside of resources it is kept), or use a .json file`,
  )
}

function wordsOf(cause: unknown): string {
  return quote(cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause), 200)
}
