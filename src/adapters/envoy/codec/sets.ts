import type { ErrorCode } from '../../../provider/error.js'
import { AssignmentProblem, problemError } from './assignment.js'
import { isObject } from '../../../kit/json.js'
import { JsonAssignment } from './json.js'
import { field } from './proto-json.js'
import { whole, type Steps } from './steps.js'

/**
 * Endpoint sets given as values: a list of `ClusterLoadAssignment`s in EDS JSON, one of them, or a
 * whole EDS document with its `resources`.
 *
 * @throws the code given, with the path of what is wrong
 */
export function parseSets(value: unknown, subject: string, code: ErrorCode): JsonAssignment[] {
  return whole(setSteps(value, subject, code))
}

/** The same, with a pause where a large set has taken a while. */
export function* setSteps(
  value: unknown,
  subject: string,
  code: ErrorCode,
): Steps<JsonAssignment[]> {
  try {
    const resources = isObject(value) ? (field(value, 'resources') ?? [value]) : value
    if (!Array.isArray(resources)) {
      throw new AssignmentProblem('', 'expected a list of ClusterLoadAssignment objects')
    }
    const sets: JsonAssignment[] = []
    for (const [i, resource] of resources.entries()) {
      sets.push(yield* JsonAssignment.steps(resource, `[${i}]`))
    }
    checkSets(sets)
    return sets
  } catch (problem) {
    throw problemError(problem, code, subject)
  }
}

/** Each set once, and none empty: publishing an empty one is an outage. */
export function checkSets(
  sets: readonly { readonly cluster: string; readonly endpoints: readonly unknown[] }[],
): void {
  if (sets.length === 0) {
    throw new AssignmentProblem('', 'no endpoint set in it, nothing is published')
  }
  const seen = new Set<string>()
  for (const [i, { cluster, endpoints }] of sets.entries()) {
    if (endpoints.length === 0) {
      throw new AssignmentProblem(
        `[${i}]`,
        `the endpoint set '${cluster}' is empty, publishing it would take the cluster down`,
      )
    }
    if (seen.has(cluster)) {
      throw new AssignmentProblem(`[${i}]`, `the endpoint set '${cluster}' is there twice`)
    }
    seen.add(cluster)
  }
}
