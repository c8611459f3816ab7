import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { Config } from '#config/schema.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import { createAssets } from './assets.ts'
import { answerWith, keepFile, lazily } from './kept-file.ts'
import { type DescribedRoute, makeDocument } from './openapi.ts'
import { docsOperations } from './operations.ts'
import { renderPage, scalarPage, swaggerPage } from './pages.ts'

export type DocsRoutesDeps = {
  auth: Auth
  config: Pick<Config, 'docs'>
  /** All routes of the application, these among them; asked for once it is complete. */
  listRoutes: () => readonly DescribedRoute[]
}

/** The OpenAPI document and two pages that show it, from this host alone. */
export function docsRoutes({ auth, config, listRoutes }: DocsRoutesDeps) {
  const app = new Elysia({ name: 'docs' })
  if (!config.docs.enabled) return app
  const assets = createAssets()
  return app
    .use(documentRoute({ auth, config, listRoutes }))
    .get('/docs', () => renderPage(swaggerPage, assets), { detail: docsOperations.swagger })
    .get('/scalar', () => renderPage(scalarPage, assets), { detail: docsOperations.scalar })
    .get(
      '/docs/assets/:hash/:name',
      async ({ params: { hash, name }, request }) => {
        const file = await assets.find(hash, name)
        if (file === null) throw new AppError('not_found', 'There is no such file.')
        return answerWith(file, request, { 'cache-control': 'public, max-age=31536000, immutable' })
      },
      { detail: docsOperations.asset },
    )
}

function documentRoute({ auth, config, listRoutes }: DocsRoutesDeps) {
  const document = lazily(async () => {
    const text = new TextEncoder().encode(JSON.stringify(await makeDocument(listRoutes())))
    return keepFile('application/json', async () => text)
  })
  const answer = async ({ request }: { request: Request }) => {
    const file = await document()
    const headers = { etag: entityTag(file.hash), 'cache-control': 'private, no-cache' }
    return isKnown(request.headers.get('if-none-match'), file.hash)
      ? new Response(null, { status: 304, headers })
      : answerWith(file, request, headers)
  }
  const app = new Elysia().use(guard(auth))
  return config.docs.requireAuth
    ? app.get('/openapi.json', answer, {
        requires: basePermission,
        detail: docsOperations.document,
      })
    : app.get('/openapi.json', answer, { detail: docsOperations.document })
}
