import { Elysia } from 'elysia'
import { actorOf } from '#audit/actor.ts'
import type { Audit } from '#audit/audit.ts'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Principal } from '#auth/principal.ts'
import type { Installer } from './installer.ts'
import { modelOperations } from './model-operations.ts'
import { renderDeleted, renderDownload, renderModel, renderStorage } from './render.ts'

type ModelLibraryRoutesDeps = {
  auth: Auth
  installer: Pick<Installer, 'models'>
  audit: Pick<Audit, 'record'>
}

const requires = 'can_manage_models'

/** What is installed. A name with a slash is one segment (`org%2Fname`) or two (`org/name`). */
export function modelLibraryRoutes(deps: ModelLibraryRoutesDeps) {
  const { auth, installer } = deps
  const { models } = installer
  return new Elysia({ name: 'installed-models' })
    .use(guard(auth))
    .get(
      '/models',
      async () => {
        const rendered = (await models.list()).map(async (model) =>
          renderModel(model, await models.usesOf(model.name)),
        )
        return { object: 'list', data: await Promise.all(rendered) }
      },
      { requires, detail: modelOperations.list },
    )
    .delete('/models/:name', ({ params: { name }, ...acting }) => remove(deps, name, acting), {
      requires,
      detail: modelOperations.remove,
    })
    .delete(
      '/models/:name/:repository',
      ({ params: { name, repository }, ...acting }) =>
        remove(deps, `${name}/${repository}`, acting),
      { requires, detail: modelOperations.removeOfOrganisation },
    )
    .post('/models/:name/verify', ({ params: { name }, ...acting }) => verify(deps, name, acting), {
      requires,
      parse: 'none',
      detail: modelOperations.verify,
    })
    .post(
      '/models/:name/:repository/verify',
      ({ params: { name, repository }, ...acting }) =>
        verify(deps, `${name}/${repository}`, acting),
      { requires, parse: 'none', detail: modelOperations.verifyOfOrganisation },
    )
    .get('/storage', async () => renderStorage(await models.usage()), {
      requires,
      detail: modelOperations.storage,
    })
}

type Acting = {
  principal: Principal
  set: Parameters<typeof actorOf>[1] & { status?: number | string }
}

async function remove(
  { installer, audit }: ModelLibraryRoutesDeps,
  name: string,
  { principal, set }: Acting,
) {
  const freedBytes = await installer.models.remove(name)
  await audit.record({
    actor: actorOf(principal, set),
    action: 'model.delete',
    resource: { type: 'model', id: name },
    changes: { before: { name, freed_bytes: freedBytes }, after: null },
  })
  return renderDeleted(name, freedBytes)
}

async function verify(
  { installer, audit }: ModelLibraryRoutesDeps,
  name: string,
  { principal, set }: Acting,
) {
  const download = await installer.models.verify(principal.userId, name)
  await audit.record({
    actor: actorOf(principal, set),
    action: 'model.verify',
    resource: { type: 'model', id: name },
    changes: { before: null, after: null },
  })
  set.status = 202
  return renderDownload(download)
}
