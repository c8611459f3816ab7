import { call, callTagged } from '../../api/call.ts'
import { isRecord, type Schema } from '../../ui/schema/schema.ts'

/** Where the value of a setting comes from. */
type SettingMeta = {
  readonly default: unknown
  /** Without changes at run time. */
  readonly configured: unknown
  readonly source: 'default' | 'file' | 'database' | 'environment'
  readonly config_key: string | null
  readonly locked_by: string | null
  readonly restart_required: boolean
}

/** One setting with its schema, its place, and its value in effect. */
export type Setting = {
  readonly key: string
  readonly schema: Schema
  readonly meta: SettingMeta
  readonly value: unknown
}

export type Configuration = {
  readonly settings: readonly Setting[]
  readonly values: unknown
  /** Of the values: a change is refused if somebody else was faster. */
  readonly tag: string | null
}

export async function loadConfiguration(signal: AbortSignal): Promise<Configuration> {
  const [described, { data: values, tag }] = await Promise.all([
    call('GET /v1/config/schema', { signal }),
    callTagged('GET /v1/config', { signal }),
  ])
  const settings = Object.entries(described.keys).map(([key, meta]) => {
    const steps = key.split('.')
    const schema = steps.reduce<Schema>(
      (parent, step) => parent.properties?.[step] ?? {},
      described.schema as Schema,
    )
    return { key, schema, meta: meta as SettingMeta, value: valueAt(values, steps) }
  })
  return { settings, values, tag }
}

function valueAt(values: unknown, steps: readonly string[]): unknown {
  return steps.reduce<unknown>(
    (parent, step) => (isRecord(parent) ? parent[step] : undefined),
    values,
  )
}

/** `{'files.max_bytes': 1}` as a merge patch. */
export function nestPatch(changes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const root: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(changes)) {
    const steps = key.split('.')
    const last = steps.pop() ?? key
    let parent = root
    for (const step of steps) {
      const child = isRecord(parent[step]) ? parent[step] : {}
      parent[step] = child
      parent = child
    }
    parent[last] = value
  }
  return root
}
