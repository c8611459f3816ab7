import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, json } from '#api/endpoint.ts'
import type { Config } from '#config/schema.ts'
import { lazy } from '#docs/assets.ts'
import { entityTag, isKnown } from '#lib/entity-tag.ts'
import { AppError } from '#lib/errors.ts'
import type { Log } from '#telemetry/log.ts'
import { chooseCoding } from './compress.ts'
import type { ConsoleFile, ConsoleFiles } from './files.ts'
import { pageHeaders } from './page-headers.ts'

export type ConsoleEndpointsDeps = {
  config: Pick<Config, 'console' | 'data'>
  log: Pick<Log, 'error'>
}

const base = '/console/'
const page = 'index.html'

/** The web page of the gateway, and the redirect of browsers to it. */
export function consoleEndpoints({ config, log }: ConsoleEndpointsDeps): Endpoint[] {
  const { enabled } = config.console
  return [rootEndpoint(enabled), ...(enabled ? fileEndpoints(config, log) : [])]
}

/** Some clients check the root of the base URL or of the host before their first request. */
function rootEndpoint(isConsole: boolean): Endpoint {
  return endpoint({
    method: 'GET',
    path: '/',
    permission: 'public',
    tag: 'Operations',
    summary: 'Check that the server is reachable',
    description:
      'For clients that probe the base URL before their first request. A browser, which prefers `text/html`, is sent to the console.',
    responses: {
      200: {
        description: 'The server is reachable.',
        content: json(Type.Object({ status: Type.Literal('ok') }), { status: 'ok' }),
      },
      302: { description: 'To the console.', headers: { location: '`/console/`.' } },
    },
    handle({ request, set }) {
      set.headers['vary'] = 'accept'
      if (!isConsole || !prefersHtml(request.headers.get('accept'))) return { status: 'ok' }
      return new Response(null, { status: 302, headers: { location: base, vary: 'accept' } })
    },
  })
}

function fileEndpoints({ data }: Pick<Config, 'data'>, log: ConsoleEndpointsDeps['log']) {
  // Nothing is loaded before the first request: most workers never get one.
  const load = lazy(async () => {
    try {
      const { loadConsoleFiles } = await import('./files.ts')
      return await loadConsoleFiles(join(data, 'console'))
    } catch (error) {
      log.error('console not available', { error })
      throw new AppError('service_unavailable', notBuilt, { cause: error })
    }
  })
  const shared = {
    method: 'GET',
    permission: 'public',
    tag: 'Console',
    responses: {
      200: { description: 'The page or the file.', content: bytes('text/html', 'text/javascript') },
      304: { description: 'The version in `if-none-match` is current.' },
    },
  } as const
  return [
    endpoint({
      ...shared,
      path: '/console',
      summary: 'Open the console',
      responses: { ...shared.responses, 302: { description: 'To `/console/`.' } },
      errors: { service_unavailable: notBuilt },
      handle: async ({ request }) =>
        new URL(request.url).pathname === base
          ? respond(request, requirePage(await load()), pageHeaders)
          : new Response(null, { status: 302, headers: { location: base } }),
    }),

    endpoint({
      ...shared,
      path: '/console/*',
      summary: 'Open a page of the console, or load one of its files',
      description:
        'Every path without a file ending is a page, which the browser renders. Files are named after their content and never change.',
      params: { '*': 'The path of a page or a file.' },
      errors: { not_found: noFile, service_unavailable: notBuilt },
      async handle({ params, request }) {
        const path = params['*']
        const files = await load()
        const file = path === page ? undefined : files.get(path)
        if (file !== undefined) return respond(request, file, assetHeaders)
        if (hasEnding(path) && path !== page) throw new AppError('not_found', noFile)
        return respond(request, requirePage(files), pageHeaders)
      },
    }),
  ]
}

const noFile = 'The console has no such file.'
const notBuilt = 'The console could not be built; the log says why.'
const assetHeaders = {
  'cache-control': 'public, max-age=31536000, immutable',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
}

function requirePage(files: ConsoleFiles): ConsoleFile {
  const file = files.get(page)
  if (file === undefined) throw new AppError('service_unavailable', notBuilt)
  return file
}

async function respond(
  request: Request,
  file: ConsoleFile,
  constant: Readonly<Record<string, string>>,
): Promise<Response> {
  const coding = chooseCoding(request.headers.get('accept-encoding'))
  // Other bytes need another tag.
  const tag = coding === null ? file.tag : `${file.tag}-${coding}`
  const headers = { ...constant, etag: entityTag(tag), vary: 'accept-encoding' }
  if (isKnown(request.headers.get('if-none-match'), tag)) {
    return new Response(null, { status: 304, headers })
  }
  return new Response(await file.read(coding), {
    headers: {
      ...headers,
      'content-type': file.type,
      ...(coding === null ? {} : { 'content-encoding': coding }),
    },
  })
}

function hasEnding(path: string): boolean {
  return /\.[^/]*$/.test(path)
}

/** Whether a client asks for HTML rather than for JSON; `*` in the header asks for neither. */
export function prefersHtml(accept: string | null): boolean {
  if (accept === null) return false
  const qualities = new Map(
    accept.split(',').map((item) => {
      const [type = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
      const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
      return [type, quality === undefined ? 1 : Number(quality)]
    }),
  )
  return (qualities.get('text/html') ?? 0) > (qualities.get('application/json') ?? 0)
}
