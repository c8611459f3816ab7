import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { admit, guard } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import type { LogoRecord } from '#branding/answer-schema.ts'
import { type Branding, isLinkTo, type LogoHead, type LogoLink } from '#branding/branding.ts'
import { withCurrentTag } from '#http/precondition.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { logoOperations } from './operations.ts'
import { receiveLogo } from './receive.ts'

type LogoRoutesDeps = { auth: Auth; branding: Branding }

/**
 * The logo, which a page shows without being able to send a credential: the link in the theme is
 * signed, so the permission is declared here and asked for where there is no such signature.
 */
export function logoRoutes({ auth, branding }: LogoRoutesDeps) {
  const changeOf = (principal: { userId: string }, request: Request) => ({
    userId: principal.userId,
    isExpected: readIfMatch(request.headers.get('if-match')),
  })
  const currentTag = async () => (await branding.logoHead()).sha256
  return new Elysia({ name: 'logo' })
    .use(guard(auth))
    .get(
      '/logo',
      async ({ request, query }) => {
        const link = linkOf(query)
        const isSigned = link !== null && branding.hasSigned(link)
        if (!isSigned) await admit(auth, request, basePermission)
        const head = await branding.logoHead()
        if (isSigned && !isLinkTo(head.sha256, link)) await admit(auth, request, basePermission)
        if (isKnown(request.headers.get('if-none-match'), head.sha256)) {
          return new Response(null, { status: 304, headers: headersOf(head) })
        }
        const logo = await branding.logo()
        return new Response(logo.content, { headers: headersOf(logo) })
      },
      { detail: readDetail },
    )
    .post(
      '/logo',
      async ({ principal, request, set }) => {
        const change = changeOf(principal, request)
        // Only when it is needed: a start has no time for what reads drawings.
        const { inspectLogo } = await import('./inspect.ts')
        const image = await inspectLogo(await receiveLogo(request))
        const logo = await withCurrentTag(set, currentTag, () => branding.setLogo(image, change))
        set.headers['etag'] = entityTag(logo.sha256)
        return renderLogo(logo)
      },
      { requires: 'can_edit_config', parse: 'none', detail: logoOperations.set },
    )
    .delete(
      '/logo',
      async ({ principal, request, set }) => {
        const change = changeOf(principal, request)
        await withCurrentTag(set, currentTag, () => branding.removeLogo(change))
        set.status = 204
      },
      { requires: 'can_edit_config', detail: logoOperations.remove },
    )
}

/** What the macro `requires` declares, for a route that a signed link opens as well. */
const readDetail = { ...logoOperations.show, 'x-permission': basePermission }

function renderLogo(logo: Awaited<ReturnType<Branding['setLogo']>>): LogoRecord {
  return {
    content_type: logo.contentType,
    bytes: logo.content.length,
    sha256: logo.sha256,
    width: logo.width,
    height: logo.height,
    sanitized: [...logo.sanitized],
    logo_url: logo.url,
  }
}

function linkOf({ v, sig }: Readonly<Record<string, string | undefined>>): LogoLink | null {
  return v === undefined || sig === undefined ? null : { version: v, signature: sig }
}

/** A drawing that is opened by itself is a page; this one may do nothing. */
function headersOf({ contentType, sha256 }: LogoHead) {
  return {
    etag: entityTag(sha256),
    'cache-control': 'no-cache',
    'content-type': contentType,
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    'cross-origin-resource-policy': 'same-site',
    'x-content-type-options': 'nosniff',
  }
}
