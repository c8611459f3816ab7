import { Type } from '@sinclair/typebox'
import { ifMatchHeader, ifNoneMatchHeader } from '#api/shapes.ts'
import { logoRecord } from '#branding/answer-schema.ts'
import { bytes, form, json, operation } from '#docs/operation.ts'

const tag = 'Branding'
const etag = 'The tag of the logo.'
const pictures = bytes('image/svg+xml', 'image/png', 'image/webp')
const changedSince = 'The logo has changed since.'

export const logoOperations = {
  show: operation({
    tag,
    summary: 'Show the logo',
    description: [
      'The link in the theme is signed and opens it without a credential or a permission, so a page can',
      'show it in an `<img>`. It is good for the logo that it was made for, and for no later one.',
    ].join(' '),
    query: Type.Object({
      v: Type.Optional(Type.String({ description: 'Of the link: which logo it is for.' })),
      sig: Type.Optional(Type.String({ description: 'Of the link: its signature.' })),
    }),
    headers: ifNoneMatchHeader,
    answers: {
      200: { description: 'The picture.', content: pictures, headers: { etag } },
      304: { description: 'The caller has it.', headers: { etag } },
    },
  }),
  set: operation({
    tag,
    summary: 'Set the logo',
    description: [
      'SVG, PNG or WebP of at most 524,288 bytes and 4,096 pixels each way, as a form or bare with a',
      'content type of `image/…`. What it is, its bytes tell. Of an SVG only what draws is kept:',
      'scripts, handlers, foreign objects, references to elsewhere and all else that could act or load',
      'are taken out, and told in `sanitized`.',
    ].join(' '),
    headers: ifMatchHeader,
    body: {
      content: {
        ...form(
          Type.Object({
            file: Type.String({ format: 'binary', description: 'The field may be called `logo`.' }),
          }),
        ),
        ...pictures,
      },
    },
    answers: {
      200: {
        description: 'The logo as it is kept.',
        content: json(logoRecord, {
          content_type: 'image/svg+xml',
          bytes: 412,
          sha256: '0d5f1b7c93ae4d6c8b2a7f10e3c5d49b6f8a1e27c0d3b5f49a6e8c1d7b2f3a50',
          width: 64,
          height: 64,
          sanitized: ['<script>', 'onload of <svg>'],
          logo_url: '/v1/branding/logo?v=0d5f1b7c93ae&sig=…',
        }),
        headers: { etag },
      },
    },
    errors: {
      request_too_large: { code: 'logo_too_large', message: 'A logo has at most 524288 bytes.' },
      unsupported_media_type: {
        code: 'unsupported_image_type',
        message:
          'A logo must be a PNG, a WebP, or an SVG in UTF-8 whose root is svg in the namespace http://www.w3.org/2000/svg.',
      },
      unprocessable: [
        'The form has no file; send it as "file".',
        { code: 'invalid_image', message: 'The PNG is damaged: a checksum is not right.' },
        {
          code: 'invalid_svg',
          message: 'An SVG must have no DOCTYPE and no entities; plain SVG has none.',
        },
      ],
      unknown_field: 'There is no field "picture"; send the logo as "file".',
      precondition_failed: changedSince,
      request_timeout: 'The request body did not come in time.',
    },
  }),
  remove: operation({
    tag,
    summary: 'Go back to the default logo',
    headers: ifMatchHeader,
    answers: { 204: { description: 'The default logo is shown.' } },
    errors: { precondition_failed: changedSince },
  }),
}
