import { leavesOf, shown } from './reload-plan.ts'
import { type Config, type ConfigSource, configSchema } from './schema.ts'
import { toFileKeys } from './spelling.ts'

/** A key of the configuration file, in its spelling. */
export type ConfigKey = {
  readonly key: string
  readonly description: string
  /** Without secrets; null: absent. */
  readonly value: unknown
  readonly default: unknown
  /** Null: the default. */
  readonly source: ConfigSource | null
  readonly isSecret: boolean
  /** Whether a reload changes it; otherwise it needs a restart. */
  readonly reloads: boolean
}

/** Every key with its value and source. */
export function listConfigKeys(config: Config): ConfigKey[] {
  return [...leavesOf(configSchema, config, config)].map(({ path, schema, reloads, after }) => ({
    key: path,
    description: String(schema['description'] ?? ''),
    value: shown(schema, after),
    default: toFileKeys(schema, schema['default'] ?? null),
    source: config.sources[path] ?? null,
    isSecret: schema['secret'] === true,
    reloads,
  }))
}
