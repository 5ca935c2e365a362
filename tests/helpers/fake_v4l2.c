// A folder with recorded buffers goes in, a camera that sends them comes out, for programs that preload this library.
//
// The node is the file $FAKE_V4L2/video0; its bytes are the memory of the buffers. $FAKE_V4L2/modes has a mode on each
// line, "YUYV 640 480 30"; $FAKE_V4L2/YUYV is what is sent in that format, then YUYV.1 and so on, over and over. A file
// "busy" there: another program streams; "still": no picture comes; "padded": rows are longer than their pixels;
// "readers": it is v4l2loopback's, and so many programs read it. Without the node the camera is unplugged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MODES = 32, BUFFERS = 8, AREA = 8 << 20 };

static struct { __u32 pixels, width, height, fps; } modes[MODES];
static int mode_count, queued[BUFFERS], queue_length, buffer_count, streaming, events, device = -1;
static struct v4l2_pix_format current;
static __u32 fps = 30;
static double next_s;

static const char *in_folder(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("FAKE_V4L2"), name);
    return path;
}

static int there(const char *name) { return access(in_folder(name), F_OK) == 0; }

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void read_modes(void) {
    FILE *file = fopen(in_folder("modes"), "r");
    char name[5];
    if (!file) return;
    mode_count = 0;
    while (mode_count < MODES && fscanf(file, "%4s %u %u %u", name, &modes[mode_count].width,
                                        &modes[mode_count].height, &modes[mode_count].fps) == 4)
        modes[mode_count++].pixels = v4l2_fourcc(name[0], name[1], name[2], name[3]);
    fclose(file);
    current.width = modes[0].width, current.height = modes[0].height, current.pixelformat = modes[0].pixels;
}

static int is_node(int handle) {
    struct stat opened, node;
    return getenv("FAKE_V4L2") && fstat(handle, &opened) == 0 && S_ISREG(opened.st_mode) &&
           (handle == device || (stat(in_folder("video0"), &node) == 0 && node.st_ino == opened.st_ino));
}

static int fail(int error) { errno = error; return -1; }

static int enumerate_formats(struct v4l2_fmtdesc *entry) {
    __u32 number = 0;
    for (int i = 0; i < mode_count; i++) {
        if (i && modes[i].pixels == modes[i - 1].pixels) continue;
        if (number++ == entry->index) { entry->pixelformat = modes[i].pixels; return 0; }
    }
    return fail(EINVAL);
}

static int enumerate_sizes(struct v4l2_frmsizeenum *entry) {
    __u32 number = 0;
    for (int i = 0; i < mode_count; i++)
        if (modes[i].pixels == entry->pixel_format && number++ == entry->index) {
            entry->type = V4L2_FRMSIZE_TYPE_DISCRETE;
            entry->discrete.width = modes[i].width, entry->discrete.height = modes[i].height;
            return 0;
        }
    return fail(EINVAL);
}

static int enumerate_rates(struct v4l2_frmivalenum *entry) {
    for (int i = 0; i < mode_count && entry->index == 0; i++)
        if (modes[i].pixels == entry->pixel_format && modes[i].width == entry->width && modes[i].height == entry->height) {
            entry->type = V4L2_FRMIVAL_TYPE_DISCRETE;
            entry->discrete.numerator = 1, entry->discrete.denominator = modes[i].fps;
            return 0;
        }
    return fail(EINVAL);
}

static __u32 samples_a_pixel(__u32 pixels) {
    if (pixels == V4L2_PIX_FMT_MJPEG) return 0;
    if (pixels == V4L2_PIX_FMT_YUYV || pixels == V4L2_PIX_FMT_UYVY) return 2;
    return pixels == V4L2_PIX_FMT_BGR24 || pixels == V4L2_PIX_FMT_RGB24 ? 3 : 1;
}

static int set_format(struct v4l2_pix_format *wanted) {
    if (there("busy") || buffer_count) return fail(EBUSY);
    int best = -1;
    for (int i = 0; i < mode_count; i++) {
        int same = modes[i].width == wanted->width && modes[i].height == wanted->height;
        if (modes[i].pixels == wanted->pixelformat && (best < 0 || same)) best = i;
    }
    if (best < 0) best = 0;
    current.pixelformat = modes[best].pixels, current.width = modes[best].width, current.height = modes[best].height;
    current.bytesperline = current.width * samples_a_pixel(current.pixelformat) + (there("padded") ? 64 : 0);
    current.sizeimage = AREA, current.colorspace = V4L2_COLORSPACE_SRGB;
    fps = modes[best].fps;
    *wanted = current;
    return 0;
}

static int describe_buffer(struct v4l2_buffer *buffer) {
    buffer->length = AREA, buffer->m.offset = buffer->index * AREA;
    return 0;
}

static int take_buffer(int handle, struct v4l2_buffer *buffer) {
    struct stat node;
    if (fstat(handle, &node) || node.st_nlink == 0) return fail(ENODEV);
    if (!streaming || !queue_length || there("still") || now_s() < next_s) return fail(EAGAIN);
    next_s = now_s() + 1.0 / fps;
    char name[32] = {0};
    memcpy(name, &current.pixelformat, 4);
    static char data[AREA];
    static int picture;
    snprintf(name + 4, sizeof name - 4, ".%d", ++picture);
    if (!there(name)) name[4] = picture = 0;
    FILE *file = fopen(in_folder(name), "rb");
    size_t size = file ? fread(data, 1, AREA, file) : 0;
    if (file) fclose(file);
    buffer->index = queued[0], buffer->bytesused = size;
    memmove(queued, queued + 1, --queue_length * sizeof *queued);
    describe_buffer(buffer);
    if (pwrite(handle, data, size, buffer->m.offset) < 0) return fail(EIO);
    double taken_s = now_s();
    buffer->timestamp.tv_sec = taken_s, buffer->timestamp.tv_usec = (taken_s - (long)taken_s) * 1e6;
    return 0;
}

static int read_readers(__u32 *count) {
    FILE *file = fopen(in_folder("readers"), "r");
    if (!file) return 0;
    int read = fscanf(file, "%u", count);
    fclose(file);
    return read == 1;
}

// As v4l2loopback 0.13 and later: the number of readers is told at once to who subscribes with "send initial", once.
static int subscribe(const struct v4l2_event_subscription *wanted) {
    __u32 count;
    if (wanted->type != V4L2_EVENT_PRIVATE_START + 0x08E00000 + 1 || !read_readers(&count)) return fail(EINVAL);
    events = wanted->flags & V4L2_EVENT_SUB_FL_SEND_INITIAL ? 1 : 0;
    return 0;
}

static int take_event(struct v4l2_event *event) {
    __u32 count;
    if (!events || !read_readers(&count)) return fail(ENOENT);
    memset(event, 0, sizeof *event);
    event->type = V4L2_EVENT_PRIVATE_START + 0x08E00000 + 1, event->sequence = 1, event->pending = --events;
    memcpy(&event->u, &count, sizeof count);
    clock_gettime(CLOCK_MONOTONIC, (struct timespec *)&event->timestamp);
    return 0;
}

static int answer(int handle, unsigned long request, void *data) {
    if (request == VIDIOC_QUERYCAP) read_modes();
    switch (request) {
    case VIDIOC_QUERYCAP: {
        struct v4l2_capability *found = data;
        memset(found, 0, sizeof *found);
        strcpy((char *)found->driver, "fake"), strcpy((char *)found->card, "Fake camera");
        found->capabilities = found->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        return 0;
    }
    case VIDIOC_ENUM_FMT: return enumerate_formats(data);
    case VIDIOC_ENUM_FRAMESIZES: return enumerate_sizes(data);
    case VIDIOC_ENUM_FRAMEINTERVALS: return enumerate_rates(data);
    case VIDIOC_G_FMT: ((struct v4l2_format *)data)->fmt.pix = current; return 0;
    case VIDIOC_S_FMT: return set_format(&((struct v4l2_format *)data)->fmt.pix);
    case VIDIOC_S_PARM:
    case VIDIOC_G_PARM: {
        struct v4l2_fract *interval = &((struct v4l2_streamparm *)data)->parm.capture.timeperframe;
        interval->numerator = 1, interval->denominator = fps;
        return 0;
    }
    case VIDIOC_REQBUFS: {
        struct v4l2_requestbuffers *wanted = data;
        if (wanted->count > BUFFERS) wanted->count = BUFFERS;
        buffer_count = wanted->count, queue_length = 0, device = buffer_count ? handle : -1;
        return ftruncate(handle, (off_t)buffer_count * AREA);
    }
    case VIDIOC_QUERYBUF: return describe_buffer(data);
    case VIDIOC_QBUF: queued[queue_length++] = ((struct v4l2_buffer *)data)->index; return 0;
    case VIDIOC_DQBUF: return take_buffer(handle, data);
    case VIDIOC_STREAMON: streaming = 1, next_s = 0; return 0;
    case VIDIOC_STREAMOFF: streaming = 0; return 0;
    case VIDIOC_SUBSCRIBE_EVENT: return subscribe(data);
    case VIDIOC_DQEVENT: return take_event(data);
    default: return fail(ENOTTY);
    }
}

int ioctl(int handle, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *data = va_arg(rest, void *);
    va_end(rest);
    if (((request >> 8) & 0xff) == 'V' && is_node(handle)) return answer(handle, request & 0xffffffff, data);
    int (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    return real(handle, request, data);
}

int select(int count, fd_set *readable, fd_set *writable, fd_set *failed, struct timeval *limit) {
    int (*real)(int, fd_set *, fd_set *, fd_set *, struct timeval *) = dlsym(RTLD_NEXT, "select");
    if (device < 0 || !readable || device >= count || !FD_ISSET(device, readable))
        return real(count, readable, writable, failed, limit);
    double end_s = now_s() + limit->tv_sec + limit->tv_usec * 1e-6;
    while (now_s() < end_s) {
        struct stat node;
        if (fstat(device, &node) || node.st_nlink == 0 || (!there("still") && now_s() >= next_s)) return 1;
        usleep(1000);
    }
    return 0;
}
