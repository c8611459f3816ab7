import { Type } from '@sinclair/typebox'
import { section, text, whole } from '#config/keys.ts'

/** The keys of object storage. */
export const storageKeys = {
  s3: section('Object storage for files. Without a bucket, files are kept in the data folder.', {
    endpoint: Type.Optional(text('Server URL: https://…', { env: 'S3_ENDPOINT' })),
    bucket: Type.Optional(text('Bucket.', { env: 'S3_BUCKET' })),
    accessKeyId: Type.Optional(text('Access key id.', { env: 'S3_ACCESS_KEY_ID', secret: true })),
    secretAccessKey: Type.Optional(
      text('Secret access key.', { env: 'S3_SECRET_ACCESS_KEY', secret: true }),
    ),
    region: text('Region.', { default: 'us-east-1', env: 'S3_REGION' }),
    prefix: Type.String({ description: 'Prefix of object names.', default: '' }),
    requestMs: whole(
      'How long the server may take for one request, or for the next bytes of a content.',
      { default: 30_000, minimum: 10 },
    ),
  }),
}
