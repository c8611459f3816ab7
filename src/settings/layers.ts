import { Value } from '@sinclair/typebox/value'
import { configSchema } from '#config/schema.ts'
import { AppError } from '#lib/errors.ts'
import { type Flat, flatten, nest } from './flat.ts'
import {
  type ConfigValues,
  configuredValues,
  isConfigValues,
  type SettingsConfig,
  settingsByKey,
} from './schema.ts'

type SettingSource = 'default' | 'file' | 'database' | 'environment'

/** What of the layers holds: default, configuration file, database, environment; the last wins. */
export type Layers = {
  /** All keys, with what administrators have set. What does not fit its key is not looked at. */
  effective(set: Flat): ConfigValues
  sourceOf(key: string, set: Flat): SettingSource
  /** What the key is where neither administrators nor the operator set it. */
  defaultOf(key: string): unknown
  /** The environment variable that gives the key, so that nobody else can; null: none. */
  lockOf(key: string): string | null
  /** Throws `conflict` of code `config_locked`. */
  demandUnlocked(keys: Iterable<string>): void
}

export function createLayers(config: SettingsConfig): Layers {
  const shipped = flatten(configuredValues(Value.Parse(configSchema, {})))
  const configured = flatten(configuredValues(config))
  const givenBy = (key: string) => config.sources[settingsByKey.get(key)?.configKey ?? '']
  const lockOf = (key: string) => {
    const given = givenBy(key)
    return given?.kind === 'environment' ? given.variable : null
  }
  const isSet = (key: string, set: Flat) =>
    set.has(key) && lockOf(key) === null && fits(key, set.get(key))
  return {
    effective(set) {
      const held = [...configured].map(([key, value]) =>
        isSet(key, set) ? ([key, set.get(key)] as const) : ([key, value] as const),
      )
      const values = nest(new Map(held))
      if (isConfigValues(values)) return values
      throw new Error('the values of the layers do not make a configuration')
    },
    sourceOf(key, set) {
      if (isSet(key, set)) return 'database'
      return givenBy(key)?.kind ?? 'default'
    },
    defaultOf: (key) => shipped.get(key) ?? null,
    lockOf,
    demandUnlocked(keys) {
      for (const key of keys) {
        const variable = lockOf(key)
        if (variable === null) continue
        throw new AppError('conflict', `"${key}" is given by the environment (${variable}).`, {
          code: 'config_locked',
          param: key,
        })
      }
    },
  }
}

/** What an earlier or a later release has set may be out of the bounds of this one. */
export function fits(key: string, value: unknown): boolean {
  return settingsByKey.get(key)?.checker.check(value) ?? false
}
