/** A copy of an object without some of its fields. */
export function without<T extends object, K extends keyof T>(
  from: T,
  fields: readonly K[],
): Omit<T, K> {
  const left: Partial<T> = { ...from }
  for (const field of fields) Reflect.deleteProperty(left, field)
  return left as Omit<T, K>
}
