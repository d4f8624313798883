{{- define "dibs.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "dibs.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "dibs.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "dibs.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Of a part: (list . "scheduler"). */}}
{{- define "dibs.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "dibs.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "dibs.labels" -}}
{{ include "dibs.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
{{- end }}

{{- define "dibs.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- /* What the pods of a part have of its values: (list . .Values.gpu). */}}
{{- define "dibs.place" -}}
{{- $root := index . 0 }}
{{- $part := index . 1 }}
{{- with $part.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $part.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dibs.grpcProbes" -}}
livenessProbe:
  grpc: {port: {{ . }}, service: liveness}
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  grpc: {port: {{ . }}}
  periodSeconds: 5
{{- end }}

{{- /* The binding of a ClusterRole to the service account of the same name. */}}
{{- define "dibs.bound" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels:
    {{- .labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .namespace }}
{{- end }}
