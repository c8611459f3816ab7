import type { Config } from '#config/schema.ts'
import { createLayers } from '#settings/layers.ts'
import type { CurrentSettings } from '#settings/schema.ts'

/** Settings that no administrator has changed. */
export function fixedSettings(config: Config): CurrentSettings {
  const values = createLayers(config).effective(new Map())
  return { current: () => values }
}
