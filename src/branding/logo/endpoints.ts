import { type Static, Type } from '@sinclair/typebox'
import { bytes, type Endpoint, endpoint, form, json, rawBody } from '#api/endpoint.ts'
import { ifMatchHeader, ifNoneMatchHeader, nullable } from '#api/shapes.ts'
import type { Auth } from '#auth/auth.ts'
import { authorize } from '#auth/guard.ts'
import { basePermission } from '#auth/permissions.ts'
import { type Branding, isLinkTo, type LogoHead } from '#branding/store.ts'
import { entityTag, isKnown, readIfMatch } from '#lib/entity-tag.ts'
import { actingPrincipal, type RequestContext } from '#lib/request-context.ts'
import { receiveLogo } from './receive.ts'

type LogoEndpointsDeps = { auth: Pick<Auth, 'authenticate'>; branding: Branding }

/** An `<img>` cannot send a credential, so the theme has a signed link to the logo. */
export function logoEndpoints({ auth, branding }: LogoEndpointsDeps): Endpoint[] {
  const changeBy = (context: RequestContext, request: Request) => ({
    principal: actingPrincipal(context),
    isExpected: readIfMatch(request.headers.get('if-match')),
  })
  return [
    endpoint({
      method: 'GET',
      path: '/v1/branding/logo',
      permission: basePermission,
      authorization: 'handler',
      tag: 'Branding',
      summary: 'Retrieve the logo',
      description: `The signed link of the theme needs no credential, so a page can use it in an \`<img>\`. It is valid
for the logo that it was created for.`,
      query: Type.Object({
        v: Type.Optional(Type.String({ description: 'The version of the logo, from the link.' })),
        sig: Type.Optional(Type.String({ description: 'The signature, from the link.' })),
      }),
      headers: ifNoneMatchHeader,
      responses: {
        200: { description: 'The image.', content: imageTypes, headers: { etag } },
        304: { description: 'The logo has not changed.', headers: { etag } },
      },
      async handle({ query: { v: version, sig: signature }, request, server }) {
        const link =
          version === undefined || signature === undefined ? null : { version, signature }
        const isSigned = link !== null && branding.hasSigned(link)
        if (!isSigned) await authorize(auth, request, access, server)
        const head = await branding.logoHead()
        if (isSigned && !isLinkTo(head.sha256, link)) {
          await authorize(auth, request, access, server)
        }
        if (isKnown(request.headers.get('if-none-match'), head.sha256)) {
          return new Response(null, { status: 304, headers: headersOf(head) })
        }
        const logo = await branding.logo()
        return new Response(logo.content, { headers: headersOf(logo) })
      },
    }),

    endpoint({
      method: 'POST',
      path: '/v1/branding/logo',
      permission: 'can_edit_config',
      tag: 'Branding',
      summary: 'Upload a logo',
      description: `SVG, PNG or WebP of at most 524,288 bytes and 4,096 pixels per side, as a form or as a raw body with a
content type of \`image/…\`. The type is detected from the bytes. An SVG is sanitised: scripts, event handlers, foreign
objects, external references and other active content are removed and listed in \`sanitized\`. Entities of a
DOCTYPE, as drawing programs write them, are expanded.`,
      headers: ifMatchHeader,
      body: rawBody({
        ...form(
          Type.Object({
            file: Type.String({
              format: 'binary',
              description: 'The field may also be named `logo`.',
            }),
          }),
        ),
        ...imageTypes,
      }),
      responses: {
        200: {
          description: 'The logo as it is stored.',
          content: json(logoRecord, logoExample),
          headers: { etag },
        },
      },
      errors: {
        request_too_large: {
          code: 'logo_too_large',
          message: 'A logo may have at most 524288 bytes.',
        },
        unsupported_media_type: {
          code: 'unsupported_image_type',
          message:
            'A logo must be a PNG, a WebP, or an SVG in UTF-8 whose root is svg in the namespace http://www.w3.org/2000/svg.',
        },
        unprocessable: [
          'The form has no file; send it as "file".',
          {
            code: 'invalid_image',
            message: 'The PNG is damaged, incomplete or followed by other data.',
          },
          { code: 'invalid_svg', message: 'The entities of the SVG expand to too much.' },
        ],
        unknown_field: 'Unknown form field "picture"; send the logo as "file".',
        precondition_failed: logoChanged,
        request_timeout: 'The request body was not received in time.',
      },
      async handle({ context, request, set }): Promise<LogoRecord> {
        const change = changeBy(context, request)
        // Loaded on first use, to keep the XML parser out of the start.
        const { inspectLogo } = await import('./inspect.ts')
        const image = await inspectLogo(await receiveLogo(request))
        const logo = await branding.setLogo(image, change)
        set.headers['etag'] = entityTag(logo.sha256)
        return {
          content_type: logo.contentType,
          bytes: logo.content.length,
          sha256: logo.sha256,
          width: logo.width,
          height: logo.height,
          sanitized: [...logo.sanitized],
          logo_url: logo.url,
        }
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/branding/logo',
      permission: 'can_edit_config',
      tag: 'Branding',
      summary: 'Restore the default logo',
      headers: ifMatchHeader,
      responses: { 204: { description: 'The default logo is restored.' } },
      errors: { precondition_failed: logoChanged },
      async handle({ context, request }) {
        await branding.removeLogo(changeBy(context, request))
      },
    }),
  ]
}

/** Opened directly, an SVG is a page: the policy makes it inert. */
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

const side = () => nullable(Type.Number(), 'In pixels; null for an SVG without a size.')

const logoRecord = Type.Object(
  {
    content_type: Type.Union([
      Type.Literal('image/png'),
      Type.Literal('image/webp'),
      Type.Literal('image/svg+xml'),
    ]),
    bytes: Type.Integer({ description: 'The size of the stored logo.' }),
    sha256: Type.String(),
    width: side(),
    height: side(),
    sanitized: Type.Array(Type.String(), { description: 'Kinds of removed content.' }),
    logo_url: Type.String({ description: 'The signed path, as in the theme.' }),
  },
  { $id: 'Logo' },
)
type LogoRecord = Static<typeof logoRecord>

const etag = 'The tag of the logo.'
const access = { permission: basePermission, scope: null } as const
const imageTypes = bytes('image/svg+xml', 'image/png', 'image/webp')
const logoChanged = 'The logo has changed.'
const logoExample = {
  content_type: 'image/svg+xml',
  bytes: 412,
  sha256: '0d5f1b7c93ae4d6c8b2a7f10e3c5d49b6f8a1e27c0d3b5f49a6e8c1d7b2f3a50',
  width: 64,
  height: 64,
  sanitized: ['<script>', 'onload of <svg>'],
  logo_url: '/v1/branding/logo?v=0d5f1b7c93ae&sig=…',
}
