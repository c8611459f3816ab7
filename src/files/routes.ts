import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { nodeAnswers, tagged } from './node-routes.ts'
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
      route('Show a file'),
    )
    .patch('/:id', (asked) => change(asked, readFileChange), {
      ...route('Rename or move a file, or change its attributes'),
      parse: 'none',
    })
    .post('/:id/move', (asked) => change(asked, readMove), {
      ...route('Move a file to another folder'),
      parse: 'none',
    })
    .post(
      '/:id/copy',
      async ({ principal, params, request, set }) => {
        const { id } = await files.find(principal, idOf(params))
        const to = readCopy(await readJsonBody(request, limits))
        set.status = 201
        return tagged(await files.copy(principal, id, to), set)
      },
      { ...route('Copy a file'), parse: 'none' },
    )
    .delete('/:id', remove, route('Put a file into the trash, or delete it for ever'))
    .post('/:id/restore', restore, {
      ...route('Take a file out of the trash'),
      parse: 'none',
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
      { ...route('Create a folder'), parse: 'none' },
    )
    .get(
      '/:id',
      async ({ principal, params, set }) => {
        const { folder, path } = await files.findFolder(principal, idOf(params))
        return { ...tagged(folder, set), path }
      },
      route('Show a folder, with the folders above it'),
    )
    .patch('/:id', (asked) => change(asked, readFolderChange), {
      ...route('Rename or move a folder'),
      parse: 'none',
    })
    .post('/:id/move', (asked) => change(asked, readMove), {
      ...route('Move a folder into another'),
      parse: 'none',
    })
    .delete('/:id', remove, route('Put a folder, and all that is in it, into the trash'))
    .post('/:id/restore', restore, {
      ...route('Take a folder out of the trash, with what was in it'),
      parse: 'none',
    })
}

function route(summary: string) {
  return { requires: 'can_access_api' as const, detail: { tags: ['Files'], summary } }
}
