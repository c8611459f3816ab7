import type { Audit } from '#audit/store.ts'
import type { ConfigFile } from '#config/config-file.ts'
import { ConfigError } from '#config/load.ts'
import { type KeyChange, planReload } from '#config/reload-plan.ts'
import type { Config } from '#config/schema.ts'
import type { Log } from '#telemetry/log.ts'
import type { Initiator } from './messages.ts'

/** What follows a changed configuration in this process. */
export type Followers = {
  readonly services: { reload(next: Config): Promise<void>; readonly audit: Pick<Audit, 'record'> }
  /** Resolves when new upstreams were asked for their models, or after a limit. */
  readonly settled: () => Promise<unknown>
}

type FollowDeps = {
  /** In effect. */
  readonly config: Config
  readonly load: (file: ConfigFile) => Config
  readonly log: Pick<Log, 'error'>
  readonly onChanged: (config: Config) => void
}

/** Follows accepted files one after the other, once the services of the process run. */
export function createFollower(deps: FollowDeps) {
  const { load, log } = deps
  const started = Promise.withResolvers<Followers>()
  let { config } = deps
  let last: Promise<unknown> = Promise.resolve()

  const change = async (file: ConfigFile, initiator: Initiator | null): Promise<string | null> => {
    try {
      const plan = planReload(config, load(file))
      if (plan.changed.length === 0) return null
      const { services, settled } = await started.promise
      await services.reload(plan.config)
      config = plan.config
      deps.onChanged(config)
      await settled()
      if (initiator !== null) await record(services.audit, file, { initiator, ...plan })
      return null
    } catch (error) {
      log.error('configuration not reloaded', { error })
      return error instanceof ConfigError ? error.faults.join('\n') : String(error)
    }
  }
  return {
    /** Why the process has not followed; null: it has. */
    follow(file: ConfigFile, initiator: Initiator | null): Promise<string | null> {
      const outcome = last.then(() => change(file, initiator))
      last = outcome
      return outcome
    },
    /** Resolves when the process has followed what was accepted while it started. */
    start(followers: Followers): Promise<unknown> {
      started.resolve(followers)
      return last
    },
  }

  /** A reload is in effect even where the database cannot record it. */
  async function record(
    audit: Pick<Audit, 'record'>,
    { path }: ConfigFile,
    { initiator, changed }: { initiator: Initiator; changed: readonly KeyChange[] },
  ): Promise<void> {
    const valuesOf = (side: 'before' | 'after') =>
      Object.fromEntries(changed.map((change) => [change.key, change[side]]))
    try {
      await audit.record({
        actor: initiator.actor,
        action: 'config.reload',
        resource: { type: 'config', id: path },
        changes: { before: valuesOf('before'), after: valuesOf('after') },
      })
    } catch (error) {
      log.error('reload of the configuration not recorded', { error })
    }
  }
}
