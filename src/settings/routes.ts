import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import type { SettingChecks } from './checks.ts'
import { createEditing, type Edited, type EditHow } from './editing.ts'
import { nest } from './flat.ts'
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
      route('can_access_api', 'Show the configuration'),
    )
    .patch(
      '/',
      async ({ principal, request, query, set }) => {
        begin(set)
        const how = readHow(request, query)
        const edit = await editing.patch(principal, await readJsonBody(request, limits), how)
        return answer(edit, how, set)
      },
      { ...route('can_edit_config', 'Change the configuration by a merge patch'), parse: 'none' },
    )
    .get(
      '/schema',
      () => renderSchema(settings),
      route('can_access_api', 'Show what can be configured, and what gives each key its value'),
    )
    .get(
      '/history',
      async ({ query }) => {
        const { revisions, hasMore } = await settings.history(readHistoryPage(query))
        return {
          object: 'list',
          data: revisions.map(renderRevision),
          has_more: hasMore,
          first_id: revisions[0]?.revision ?? null,
          last_id: revisions.at(-1)?.revision ?? null,
        }
      },
      route('can_edit_config', 'List the changes, newest first'),
    )
    .post(
      '/rollback',
      async ({ principal, request, query, set }) => {
        begin(set)
        const how = readHow(request, query)
        const revision = readRollback(await readJsonBody(request, limits))
        return answer(await editing.rollBack(principal, revision, how), how, set)
      },
      { ...route('can_edit_config', 'Go back to what an earlier change left'), parse: 'none' },
    )
}

function route(requires: Permission, summary: string) {
  return { requires, detail: { tags: ['Configuration'], summary } }
}

function readHow(request: Request, query: Parameters<typeof readDryRun>[0]): EditHow {
  return { ifMatch: request.headers.get('if-match'), isDryRun: readDryRun(query) }
}

function tag(set: Headers, value: string): void {
  set.headers['etag'] = value
}

function answer({ before, after, warnings }: Edited, { isDryRun }: EditHow, set: Headers) {
  if (isDryRun) return { before: before.values, after: after.values, warnings }
  tag(set, after.tag)
  return after.values
}

function renderSchema({ layers, standing }: Settings) {
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

function renderRevision({ revision, actorId, patch, before, after, createdAt }: Revision) {
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
