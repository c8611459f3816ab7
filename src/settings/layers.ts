import { Value } from '@sinclair/typebox/value'
import { type Config, type ConfigSource, configSchema } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { type Flat, nest } from './patch.ts'
import { type ConfigValues, isConfigValues, settingsByKey } from './schema.ts'

type SettingSource = 'default' | 'file' | 'database' | 'environment'

/** Precedence of the layers: default, configuration file, database, environment (highest). */
export function createLayers(config: Config) {
  const sourceInConfig = (key: string) => {
    const configKey = settingsByKey.get(key)?.configKey ?? ''
    return config.sources[configKey] ?? sourceOfField(config, configKey)
  }
  /** The environment variable that locks the key; null: none. */
  const lockOf = (key: string): string | null => {
    const source = sourceInConfig(key)
    return source?.kind === 'environment' ? source.variable : null
  }
  const isOverridden = (key: string, overrides: Flat) =>
    overrides.has(key) && lockOf(key) === null && matchesSchema(key, overrides.get(key))
  const configured = valuesIn(config)
  const flat = (overrides: Flat): Flat =>
    new Map(
      [...configured].map(([key, value]) => [
        key,
        isOverridden(key, overrides) ? overrides.get(key) : value,
      ]),
    )
  return {
    /** All values. Overrides that do not match the schema of this release are ignored. */
    effective: (overrides: Flat): ConfigValues => configValuesOf(flat(overrides)),
    flat,
    sourceOf(key: string, overrides: Flat): SettingSource {
      if (isOverridden(key, overrides)) return 'database'
      return sourceInConfig(key)?.kind ?? 'default'
    },
    /** The value without configuration and overrides. */
    defaultOf: (key: string): unknown => shipped().get(key) ?? null,
    /** The value without overrides. */
    configuredOf: (key: string): unknown => configured.get(key) ?? null,
    lockOf,
    /** Whether null switches off what the configuration file has set. */
    isSwitchedOffByNull: (key: string): boolean =>
      settingsByKey.get(key)?.isNullable === true && (configured.get(key) ?? null) !== null,
    /** Throws `conflict` of code `config_locked`. */
    requireUnlocked(keys: Iterable<string>): void {
      for (const key of keys) {
        const variable = lockOf(key)
        if (variable === null) continue
        throw new AppError('conflict', `"${key}" is locked by the environment (${variable}).`, {
          code: 'config_locked',
          param: key,
        })
      }
    },
  }
}

/** Of an object, whose fields have their own sources. */
function sourceOfField({ sources }: Config, configKey: string): ConfigSource | undefined {
  const path = Object.keys(sources).find((key) => key.startsWith(`${configKey}.`))
  return path === undefined ? undefined : sources[path]
}

/** The values without configuration and overrides. */
export function shippedValues(): ConfigValues {
  return configValuesOf(shipped())
}

let shippedByKey: Flat | undefined

function shipped(): Flat {
  const config = (): Config => ({ ...Value.Parse(configSchema, {}), sources: {}, formerNames: [] })
  shippedByKey ??= valuesIn(config())
  return shippedByKey
}

function valuesIn(config: Config): Flat {
  return new Map([...settingsByKey.values()].map(({ key, valueIn }) => [key, valueIn(config)]))
}

function configValuesOf(flat: Iterable<readonly [string, unknown]>): ConfigValues {
  const values = nest(new Map(flat))
  if (isConfigValues(values)) return values
  throw new Error('the setting layers do not form valid configuration values')
}

/** Whether this release accepts the value; another release may have had other bounds. */
export function matchesSchema(key: string, value: unknown): boolean {
  const setting = settingsByKey.get(key)
  return (value === null ? setting?.isNullable : setting?.checker.check(value)) ?? false
}
