import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { entityTag, readIfMatch } from '#lib/entity-tag.ts'
import type {
  ConfigEdited,
  ConfigHistory,
  ConfigRevision,
  ConfigSchemaRecord,
} from './answer-schema.ts'
import type { SettingChecks } from './checks.ts'
import { createEditing, type Edited, type EditHow } from './editing.ts'
import { nest } from './flat.ts'
import { settingsOperations } from './operations.ts'
import { readDryRun, readHistoryPage, readRollback } from './read-query.ts'
import { renderJsonSchema, settingsByKey } from './schema.ts'
import type { Settings } from './settings.ts'
import type { Revision } from './store.ts'

export type SettingsRoutesDeps = SettingChecks & {
  auth: Auth
  settings: Settings
  config: Pick<Config, 'limits'>
}

/** More than every key at its longest. */
const bodyBytesMax = 262_144

type Headers = { headers: Record<string, string | number> }

/** Reading and changing the configuration of the running system. */
export function settingsRoutes({ auth, settings, config, ...checks }: SettingsRoutesDeps) {
  const editing = createEditing(settings, checks)
  const limits = {
    ...config.limits,
    requestBytesMax: Math.min(config.limits.requestBytesMax, bodyBytesMax),
  }
  /** A refusal too tells what stands. */
  const begin = (set: Headers) => tag(set, settings.standing().tag)
  return new Elysia({ name: 'settings', prefix: '/v1/config' })
    .use(guard(auth))
    .get(
      '/',
      ({ set }) => {
        const { tag: standing, values } = settings.standing()
        tag(set, standing)
        return values
      },
      { requires: 'can_access_api', detail: settingsOperations.show },
    )
    .patch(
      '/',
      async ({ principal, request, query, set }) => {
        begin(set)
        const how = readHow(request, query)
        const edit = await editing.patch(principal, await readJsonBody(request, limits), how)
        return answer(edit, how, set)
      },
      { requires: 'can_edit_config', parse: 'none', detail: settingsOperations.change },
    )
    .get('/schema', () => renderSchema(settings), {
      requires: 'can_access_api',
      detail: settingsOperations.schema,
    })
    .get(
      '/history',
      async ({ query }) => renderHistory(await settings.history(readHistoryPage(query))),
      { requires: 'can_edit_config', detail: settingsOperations.history },
    )
    .post(
      '/rollback',
      async ({ principal, request, query, set }) => {
        begin(set)
        const how = readHow(request, query)
        const revision = readRollback(await readJsonBody(request, limits))
        return answer(await editing.rollBack(principal, revision, how), how, set)
      },
      { requires: 'can_edit_config', parse: 'none', detail: settingsOperations.rollBack },
    )
}

function readHow(request: Request, query: Parameters<typeof readDryRun>[0]): EditHow {
  return { isExpected: readIfMatch(request.headers.get('if-match')), isDryRun: readDryRun(query) }
}

function tag(set: Headers, name: string): void {
  set.headers['etag'] = entityTag(name)
}

function answer(
  { before, after, warnings }: Edited,
  { isDryRun }: EditHow,
  set: Headers,
): ConfigEdited {
  if (isDryRun) return { before: before.values, after: after.values, warnings: [...warnings] }
  tag(set, after.tag)
  return after.values
}

function renderSchema({ layers, standing }: Settings): ConfigSchemaRecord {
  const { set } = standing()
  const keys = [...settingsByKey.values()].map(({ key, configKey }) => [
    key,
    {
      default: layers.defaultOf(key),
      source: layers.sourceOf(key, set),
      config_key: configKey,
      locked_by: layers.lockOf(key),
      // Only what acts at once is a setting.
      restart_required: false,
    },
  ])
  return {
    object: 'config.schema',
    schema: renderJsonSchema(layers.defaultOf),
    keys: Object.fromEntries(keys),
  }
}

type HistoryPage = Awaited<ReturnType<Settings['history']>>

function renderHistory({ revisions, hasMore }: HistoryPage): ConfigHistory {
  return {
    object: 'list',
    data: revisions.map(renderRevision),
    has_more: hasMore,
    first_id: revisions[0]?.revision ?? null,
    last_id: revisions.at(-1)?.revision ?? null,
  }
}

function renderRevision(change: Revision): ConfigRevision {
  const { revision, actorId, patch, before, after, createdAt } = change
  return {
    object: 'config.revision',
    revision,
    created_at: createdAt.toISOString(),
    actor_id: actorId,
    patch: nest(patch),
    before: nest(before),
    after: nest(after),
  }
}
