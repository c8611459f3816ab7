export const audit = {
  'audit.about':
    'Who changed what, and when. Entries are written with the change itself and contain no secrets.',
  'audit.action': 'Action',
  'audit.any': 'Any',
  'audit.by_key': 'with the API key',
  'audit.changes': 'Changes',
  'audit.export': 'Export',
  'audit.from': 'From',
  'audit.no_fields': 'This entry has no fields.',
  'audit.none': 'No entries',
  'audit.none_hint':
    'Administrative changes appear here: groups, users, keys, settings, shares. Choose a longer period or fewer filters.',
  'audit.resource': 'Resource',
  'audit.show': 'Show',
  'audit.show_name': 'Show {action} of {id}',
  'audit.system': 'The system',
  'audit.title': 'Audit log',
  'audit.to': 'To',
  'audit.when': 'When',
  'audit.who': 'Who',
}
