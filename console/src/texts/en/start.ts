export const start = {
  'start.about':
    'One address for every model and speech engine behind it. Point a client at it, or try a model right here.',
  'start.chat': 'Chat with a model',
  'start.chat_hint': 'Stream answers, tools and reasoning, and copy the request as code.',
  'start.client': 'Client',
  'start.clients': 'Connect a client',
  'start.clients_hint':
    'Create a key, then copy the snippet of your client. It has your address and, for this visit, your new key.',
  'start.database': 'Gateway',
  'start.engines': 'Speech engines',
  'start.engines_none': 'None configured',
  'start.gateway_down': 'Stopping',
  'start.gateway_up': 'Accepting requests',
  'start.greeting': 'Hello, {name}',
  'start.health': 'Health',
  'start.key_create': 'Create a key for these snippets',
  'start.key_made':
    'Key “{name}” created. It is shown on this page until you leave it, and never again.',
  'start.key_name': 'Console quick start',
  'start.keys': 'Manage keys',
  'start.model': 'Model',
  'start.models': 'Models for you',
  'start.models_none': 'No model yet',
  'start.title': 'Start',
  'start.upstream_bad': '{bad} of {all} out of service',
  'start.upstream_good': '{all} in service',
  'start.upstreams': 'Upstreams',
}
