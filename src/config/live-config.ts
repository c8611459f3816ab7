import { type Config, configSchema } from './schema.ts'

/**
 * A configuration whose sections are those of the latest reload: `config.limits` is to be read at each
 * use. Each section is immutable.
 */
export function createLiveConfig(initial: Config): {
  readonly config: Config
  /** The latest one itself, which does not change. */
  current(): Config
  replace(next: Config): void
} {
  let current = initial
  const config = {}
  for (const name of new Set([...Object.keys(configSchema.properties), ...Object.keys(initial)])) {
    Object.defineProperty(config, name, {
      enumerable: true,
      get: () => current[name as keyof Config],
    })
  }
  return {
    config: config as Config,
    current: () => current,
    replace(next) {
      current = next
    },
  }
}
