import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { entityTag } from '#lib/entity-tag.ts'
import { folderOperations } from './folder-operations.ts'
import { nodeAnswers, tagged, versionOf } from './node-routes.ts'
import { fileOperations } from './operations.ts'
import type { FolderWithPath } from './record.ts'
import { renderFolder } from './render.ts'
import { readCopy, readFileChange, readFolderChange, readMove, readNewFolder } from './schema.ts'
import type { Files } from './tree.ts'

export type FileRoutesDeps = {
  auth: Auth
  files: Files
  config: Pick<Config, 'limits'>
}

/** What is done with files; how their contents come in and go out is in `content/`. */
export function fileRoutes({ auth, files, config: { limits } }: FileRoutesDeps) {
  const { idOf, change, restore, remove } = nodeAnswers('file', files, limits)
  return new Elysia({ name: 'files', prefix: '/v1/files' })
    .use(guard(auth))
    .get(
      '/:id',
      async ({ principal, params, set }) => tagged(await files.find(principal, idOf(params)), set),
      { requires: 'can_access_api', detail: fileOperations.show },
    )
    .patch('/:id', (asked) => change(asked, readFileChange), {
      requires: 'can_access_api',
      parse: 'none',
      detail: fileOperations.change,
    })
    .post('/:id/move', (asked) => change(asked, readMove), {
      requires: 'can_access_api',
      parse: 'none',
      detail: fileOperations.move,
    })
    .post(
      '/:id/copy',
      async ({ principal, params, request, set }) => {
        const { id } = await files.find(principal, idOf(params))
        const to = readCopy(await readJsonBody(request, limits))
        set.status = 201
        return tagged(await files.copy(principal, id, to), set)
      },
      { requires: 'can_access_api', parse: 'none', detail: fileOperations.copy },
    )
    .delete('/:id', remove, { requires: 'can_access_api', detail: fileOperations.remove })
    .post('/:id/restore', restore, {
      requires: 'can_access_api',
      parse: 'none',
      detail: fileOperations.restore,
    })
}

export function folderRoutes({ auth, files, config: { limits } }: FileRoutesDeps) {
  const { idOf, change, restore, remove } = nodeAnswers('folder', files, limits)
  return new Elysia({ name: 'folders', prefix: '/v1/folders' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request, set }) => {
        const wanted = readNewFolder(await readJsonBody(request, limits))
        const folder = await files.createFolder(principal, wanted)
        set.status = 201
        return tagged(folder, set)
      },
      { requires: 'can_access_api', parse: 'none', detail: folderOperations.create },
    )
    .get(
      '/:id',
      async ({ principal, params, set }) => {
        const { folder, path } = await files.findFolder(principal, idOf(params))
        set.headers['etag'] = entityTag(versionOf(folder))
        const shown: FolderWithPath = { ...renderFolder(folder), path: [...path] }
        return shown
      },
      { requires: 'can_access_api', detail: folderOperations.show },
    )
    .patch('/:id', (asked) => change(asked, readFolderChange), {
      requires: 'can_access_api',
      parse: 'none',
      detail: folderOperations.change,
    })
    .post('/:id/move', (asked) => change(asked, readMove), {
      requires: 'can_access_api',
      parse: 'none',
      detail: folderOperations.move,
    })
    .delete('/:id', remove, { requires: 'can_access_api', detail: folderOperations.remove })
    .post('/:id/restore', restore, {
      requires: 'can_access_api',
      parse: 'none',
      detail: folderOperations.restore,
    })
}
