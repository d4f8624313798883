{{- /* Whoever runs on a node as this account writes that node's slices, and no others. */}}
{{- define "dibs.ownSlices" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}-slices
  labels:
    {{- .labels | nindent 4 }}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [resource.k8s.io]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [resourceslices]
  matchConditions:
  - name: is-the-driver
    expression: >-
      request.userInfo.username == 'system:serviceaccount:{{ .namespace }}:{{ .account }}'
  variables:
  - name: own
    expression: >-
      request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')
  - name: node
    expression: >-
      (request.operation == 'DELETE' ? oldObject : object).spec.?nodeName.orValue('')
  validations:
  - expression: variables.own != ''
    message: the account is used outside of a pod on a node
  - expression: variables.own == variables.node
    messageExpression: >-
      'a driver on node ' + variables.own + ' may not write ' +
      (variables.node == '' ? 'slices of the whole cluster' : 'slices of node ' + variables.node)
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}-slices
  labels:
    {{- .labels | nindent 4 }}
spec:
  policyName: {{ .name }}-slices
  validationActions: [Deny]
{{- end }}
