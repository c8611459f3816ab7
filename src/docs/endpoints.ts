import { Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { Tags } from '#module.ts'
import { createAssets, lazy, loadStaticFile, respondWithFile } from './assets.ts'
import { makeDocument } from './openapi.ts'
import { renderPage, scalarPage, swaggerPage } from './pages.ts'

export type DocsEndpointsDeps = {
  config: Pick<Config, 'docs'>
  /** All endpoints of the application, these included; called with the first request. */
  listEndpoints: () => readonly Endpoint[]
  tags: Tags
}

/** The OpenAPI document and two pages that show it, without any other host. */
export function docsEndpoints({ config, listEndpoints, tags }: DocsEndpointsDeps): Endpoint[] {
  if (!config.docs.enabled) return []
  const assets = createAssets()
  const document = lazy(async () => {
    const text = new TextEncoder().encode(JSON.stringify(await makeDocument(listEndpoints(), tags)))
    return loadStaticFile('application/json', async () => text)
  })
  return [
    endpoint({
      method: 'GET',
      path: '/openapi.json',
      permission: config.docs.requireAuth ? 'can_access_api' : 'public',
      tag: 'Operations',
      summary: 'Read this document',
      description: 'OpenAPI 3.1. It changes only with a release.',
      responses: {
        200: {
          description: 'The document.',
          content: json(documentSchema, documentExample),
          headers: { etag: 'Changes with the document.' },
        },
        304: { description: 'The version in `if-none-match` is current.' },
      },
      errors: draining,
      async handle({ request }) {
        const file = await document()
        const headers = { etag: entityTag(file.hash), 'cache-control': 'private, no-cache' }
        return isKnown(request.headers.get('if-none-match'), file.hash)
          ? new Response(null, { status: 304, headers })
          : respondWithFile(file, request, headers)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/docs',
      permission: 'public',
      tag: 'Operations',
      summary: 'Open the documentation in Swagger UI',
      responses: page,
      errors: draining,
      handle: () => renderPage(swaggerPage, assets),
    }),

    endpoint({
      method: 'GET',
      path: '/scalar',
      permission: 'public',
      tag: 'Operations',
      summary: 'Open the documentation in Scalar',
      responses: page,
      errors: draining,
      handle: () => renderPage(scalarPage, assets),
    }),

    endpoint({
      method: 'GET',
      path: '/docs/assets/:hash/:name',
      permission: 'public',
      tag: 'Operations',
      summary: 'Load a script or a style sheet of these pages',
      params: { hash: 'The hash of its content.', name: 'The name of the file.' },
      responses: {
        200: {
          description: 'The file, which never changes under this path.',
          content: bytes('text/javascript', 'text/css'),
        },
      },
      errors: { not_found: 'There is no such file.', ...draining },
      async handle({ params: { hash, name }, request }) {
        const file = await assets.find(hash, name)
        if (file === null) throw new AppError('not_found', 'There is no such file.')
        return respondWithFile(file, request, {
          'cache-control': 'public, max-age=31536000, immutable',
        })
      },
    }),
  ]
}

const draining = { draining: 'The server is shutting down.' }
const page = { 200: { description: 'The page.', content: bytes('text/html') } }
const open = { additionalProperties: true }
const documentSchema = Type.Object(
  { openapi: Type.String(), info: Type.Object({}, open), paths: Type.Object({}, open) },
  open,
)
const documentExample = { openapi: '3.1.0', info: { title: 'Sluice', version: '1.0.0' }, paths: {} }
