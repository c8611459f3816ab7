import { createHash } from 'node:crypto'
import { isRecord } from '#lib/json.ts'

type Policy = {
  readonly groups: readonly string[]
  readonly settings: Readonly<Record<string, unknown>>
}

export type ManagedSettings = {
  readonly uuid: string
  /** Clients compute it from the settings that they hold. */
  readonly checksum: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** The settings of the first policy for one of these groups; null: there is none. */
export function settingsFor(
  policies: readonly Policy[],
  groups: readonly string[],
): ManagedSettings | null {
  const found = policies.find(
    (policy) => policy.groups.length === 0 || policy.groups.some((group) => groups.includes(group)),
  )
  if (found === undefined) return null
  const { settings } = found
  const hash = createHash('sha256')
    .update(JSON.stringify(sorted(settings)))
    .digest('hex')
  const checksum = `sha256:${hash}`
  return { uuid: checksum, checksum, settings }
}

/** With the keys of each object in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]))
}
