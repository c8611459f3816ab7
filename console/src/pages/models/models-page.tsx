import { call } from '../../api/call.ts'
import { may } from '../../session/session.ts'
import { text } from '../../texts/texts.ts'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Catalogue } from './catalogue.tsx'
import { Upstreams } from './upstreams.tsx'

export function ModelsPage() {
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const config = useQuery((signal) => call('GET /v1/config', { signal }), 'config')
  return (
    <Page title={text('models.title')} about={text('models.about')}>
      {may('can_manage_models') && <Upstreams />}
      <Catalogue models={models} rules={config.data?.models.access ?? []} />
    </Page>
  )
}
